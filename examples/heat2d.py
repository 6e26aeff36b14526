"""The two-dimensional heat equation on a grid of MPI ranks, checked against the exact solution.

The unit square starts with the temperature sin(pi x) sin(pi y) and its edge is kept at zero; the exact temperature then
is the same shape times exp(-2 pi^2 t). Each rank owns a rectangle of the grid and exchanges its halo with its four
neighbours before every step (explicit Euler, five-point stencil). For this start the discrete solution is known exactly
as well, so a single wrong halo value shows: the exit code is 0 only when both differences are within their bounds.

    mpirun python heat2d.py [--cells 64] [--time 0.05] [--hold SECONDS]

Needs mpi4py and nothing else.
"""

import argparse
import socket
import sys
import time
from array import array
from math import exp, pi, sin

from mpi4py import MPI

# The largest step that keeps explicit Euler stable is a quarter of the squared cell width.
STEP_SHARE = 0.2
# Rounding only: the discrete solution is known in closed form.
DISCRETE_BOUND = 1e-11
# The difference to the continuous solution shrinks with the square of the cell width; this factor holds for times to
# 0.1.
EXACT_BOUND_PER_SQUARED_WIDTH = 4.0


class Grid:
    """One rank's rectangle of the inner points, with a halo of one point around it."""

    def __init__(self, cart: MPI.Cartcomm, cells: int) -> None:
        self.cart = cart
        self.width = 1.0 / cells
        rows, columns = cart.dims
        row, column = cart.coords
        self.first_row, self.rows = share(cells - 1, rows, row)
        self.first_column, self.columns = share(cells - 1, columns, column)
        self.stride = self.columns + 2
        self.values = array("d", bytes(8 * self.stride * (self.rows + 2)))
        self.column_type = MPI.DOUBLE.Create_vector(self.rows, 1, self.stride).Commit()
        self.row_neighbours = cart.Shift(0, 1)
        self.column_neighbours = cart.Shift(1, 1)

    def shape(self, row: int, column: int) -> float:
        """sin(pi x) sin(pi y) at a point of this rectangle, counted from 1."""
        x = (self.first_column + column) * self.width
        y = (self.first_row + row) * self.width
        return sin(pi * x) * sin(pi * y)

    def fill(self) -> None:
        """The temperature at time 0."""
        for row in range(1, self.rows + 1):
            for column in range(1, self.columns + 1):
                self.values[row * self.stride + column] = self.shape(row, column)

    def exchange_rims(self) -> None:
        """Exchange halo rows and columns with the neighbours."""
        row_bytes, values = 8 * self.stride, memoryview(self.values).cast("B")
        before, after = self.row_neighbours
        for here, there, send, receive in ((before, after, 1, self.rows + 1), (after, before, self.rows, 0)):
            self.cart.Sendrecv(
                [values[send * row_bytes :], self.stride, MPI.DOUBLE],
                here,
                recvbuf=[values[receive * row_bytes :], self.stride, MPI.DOUBLE],
                source=there,
            )
        before, after = self.column_neighbours
        for here, there, send, receive in ((before, after, 1, self.columns + 1), (after, before, self.columns, 0)):
            self.cart.Sendrecv(
                [values[row_bytes + 8 * send :], 1, self.column_type],
                here,
                recvbuf=[values[row_bytes + 8 * receive :], 1, self.column_type],
                source=there,
            )

    def step(self, share_of_stability: float) -> None:
        """One explicit Euler step of all points of this rectangle."""
        old, stride = self.values, self.stride
        new = array("d", old)
        for row in range(1, self.rows + 1):
            start = row * stride
            for here in range(start + 1, start + self.columns + 1):
                around = old[here - 1] + old[here + 1] + old[here - stride] + old[here + stride]
                new[here] = old[here] + share_of_stability * (around - 4 * old[here])
        self.values = new

    def difference(self, factor: float) -> float:
        """The largest difference, over all ranks, to ``factor`` times the shape of the start."""
        largest = 0.0
        for row in range(1, self.rows + 1):
            for column in range(1, self.columns + 1):
                here = self.values[row * self.stride + column]
                largest = max(largest, abs(here - factor * self.shape(row, column)))
        return float(self.cart.allreduce(largest, MPI.MAX))


def say(line: str) -> None:
    """Print a line by one write, so that lines of several ranks do not mix."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def share(points: int, parts: int, part: int) -> tuple[int, int]:
    """First point and number of points of this part of an even division."""
    first = points * part // parts
    return first, points * (part + 1) // parts - first


def solve(grid: Grid, end: float) -> tuple[int, float, float]:
    """Steps to at least time ``end``: their number and the differences to the discrete and to the exact solution."""
    step = STEP_SHARE * grid.width**2
    steps = max(1, round(end / step))
    for _ in range(steps):
        grid.exchange_rims()
        grid.step(STEP_SHARE)
    decay = 1 - 8 * STEP_SHARE * sin(pi * grid.width / 2) ** 2
    return steps, grid.difference(decay**steps), grid.difference(exp(-2 * pi**2 * steps * step))


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Solve the 2-D heat equation with MPI and check the result.")
    parser.add_argument("--cells", type=int, default=64, help="cells along each side (default: 64)")
    parser.add_argument("--time", type=float, default=0.05, help="simulated time (default: 0.05)")
    parser.add_argument("--hold", type=float, default=0.0, help="stay for so many seconds at the end, to be looked at")
    return parser.parse_args()


def main() -> int:
    """Solve and check; 0 if the results are right."""
    options = arguments()
    world = MPI.COMM_WORLD
    dims = MPI.Compute_dims(world.size, 2)
    if options.cells - 1 < max(dims):
        print(f"--cells {options.cells}: too few for {dims[0]} x {dims[1]} ranks", file=sys.stderr)
        return 2
    grid = Grid(world.Create_cart(dims, periods=[False, False], reorder=False), options.cells)
    say(
        f"rank {world.rank} of {world.size} on {socket.gethostname()}: {grid.rows} x {grid.columns} points at "
        f"({grid.first_row}, {grid.first_column})"
    )
    grid.fill()
    began = time.monotonic()
    steps, discrete, exact = solve(grid, options.time)
    seconds = time.monotonic() - began
    exact_bound = EXACT_BOUND_PER_SQUARED_WIDTH * grid.width**2
    right = discrete <= DISCRETE_BOUND and exact <= exact_bound
    if world.rank == 0:
        say(f"{options.cells} x {options.cells} cells, {steps} steps in {seconds:.2f} s on {world.size} ranks")
        say(f"difference to the discrete solution: {discrete:.3e} (bound {DISCRETE_BOUND:.0e})")
        say(f"difference to the exact solution:    {exact:.3e} (bound {exact_bound:.1e})")
        say("the result is right" if right else "THE RESULT IS WRONG")
    time.sleep(options.hold)
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
