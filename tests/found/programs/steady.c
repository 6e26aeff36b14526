/* Ranks that add up numbers together, step after step, until a file appears: each sum must be right.
 *
 *     mpicc -o steady steady.c && mpirun ./steady STOP
 */
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int rank, size, stop = 0;
    long step = 0, wrong = 0, sum;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    while (!stop) {
        long mine = (rank + 1) * ++step;
        MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
        wrong += sum != step * size * (size + 1) / 2;
        if (rank == 0) {
            printf("step %ld\n", step);
            fflush(stdout);
            stop = access(argv[1], F_OK) == 0;
        }
        MPI_Bcast(&stop, 1, MPI_INT, 0, MPI_COMM_WORLD);
        usleep(200000);
    }
    MPI_Allreduce(&wrong, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        printf("ranks %d steps %ld wrong %ld\n", size, step, sum);
    MPI_Finalize();
    return sum != 0;
}
