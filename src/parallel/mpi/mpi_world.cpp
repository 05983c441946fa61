#include "parallel/mpi/mpi_world.h"
