/* A token goes once around all ranks, each adding its number; every rank says where it runs.
 *
 *     mpicc -o ring ring.c && mpirun ./ring [SECONDS]
 *
 * With SECONDS the ranks then compute for so long, to be looked at. Exits 0 when the sum is right.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int rank, size, token = 0, sum = 0;
    char host[256] = "";

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    gethostname(host, sizeof host - 1);
    printf("rank %d of %d on %s pid %d\n", rank, size, host, (int)getpid());
    fflush(stdout);

    if (rank > 0)
        MPI_Recv(&token, 1, MPI_INT, rank - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    token += rank;
    if (rank + 1 < size)
        MPI_Send(&token, 1, MPI_INT, rank + 1, 0, MPI_COMM_WORLD);
    sum = token;
    MPI_Bcast(&sum, 1, MPI_INT, size - 1, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("sum %d, expected %d\n", sum, size * (size - 1) / 2);
        fflush(stdout);
    }

    double end = MPI_Wtime() + (argc > 1 ? atof(argv[1]) : 0.0);
    while (MPI_Wtime() < end)
        ;
    MPI_Finalize();
    return sum == size * (size - 1) / 2 ? 0 : 1;
}
