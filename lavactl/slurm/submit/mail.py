"""--mail-type and --mail-user as the events of a job that lava sends mail for.

Invariant: an event that no mail is sent for is named, never dropped.
"""

from lavactl.submit.submission import NO_MAIL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io
    from lavactl.slurm.submit.choices import Choices
    from lavactl.wire import messages

# Words of Slurm: those of -notify that they are; none where lava sends no mail.
EVENTS = {
    "NONE": (), "BEGIN": ("start",), "END": ("done", "exit"), "FAIL": ("exit",), "ALL": ("start", "done", "exit"),
    **dict.fromkeys(("REQUEUE", "INVALID_DEPEND", "STAGE_OUT", "TIME_LIMIT", "TIME_LIMIT_90", "TIME_LIMIT_80",
                     "TIME_LIMIT_50", "ARRAY_TASKS"), ()),
}  # fmt: skip
HONOURED = ("NONE", "BEGIN", "END", "FAIL", "ALL", "ARRAY_TASKS")
NO_EVENT = "has no effect: mail is sent at the start and the end of a job only."
NO_ARRAY = "has no effect: each element of an array would have a mail of its own, which ARRAY_TASKS beside it asks for."


def fill_in(spec: "messages.JobSpec", choices: "Choices", io: "Io") -> None:
    """Fill in whom mail about the job goes to, and of what.

    Raises:
        CommandError: an event that Slurm does not have, or an address that no mail program takes for one.
    """
    spec.mail_user = _addresses(choices)
    words = [word.strip().upper() for word in (choices.last("mail-type") or "").split(",") if word.strip()]
    for word in words:
        if word not in EVENTS:
            raise choices.wrong(f"--mail-type {word}: expected words of {', '.join(EVENTS)}")
    for word in words:
        if word not in HONOURED:
            _note(f"--mail-type {word} {NO_EVENT}", choices, io)
    events = {event for word in words for event in EVENTS[word]}
    if events and spec.array and "ARRAY_TASKS" not in words:
        _note(f"--mail-type {NO_ARRAY}", choices, io)
        return
    if events and not io.site_setting("LSB_MAILPROG"):
        _note(f"--mail-type {NO_MAIL}", choices, io)
    spec.mail_events = " ".join(event for event in EVENTS["ALL"] if event in events)


def _addresses(choices: "Choices") -> str:
    text = choices.last("mail-user") or ""
    for address in text.replace(",", " ").split():
        if address.startswith("-") or not address.isprintable():
            raise choices.wrong(f"--mail-user {address}: expected addresses such as ann or ann@example.org")
    return text


def _note(sentence: str, choices: "Choices", io: "Io") -> None:
    if "quiet" not in choices:
        io.error(f"{choices.command}: {sentence}")
