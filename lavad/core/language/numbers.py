"""Numbers as messages, reasons and tables show them."""


def number_text(number: float) -> str:
    """Write a number with all its digits and without an exponent: ``300``, ``0.1``, ``12345678``.

    The digits that a float has beyond its fifteenth are those of its rounding, as in 0.1 + 0.2, and are left out.
    """
    text = f"{number:.15g}"
    if "e" not in text:
        return text
    return f"{number:.0f}" if abs(number) >= 1 else f"{number:.15f}".rstrip("0").rstrip(".")
