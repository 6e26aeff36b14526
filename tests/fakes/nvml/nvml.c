/*
 * A stand-in for NVIDIA's management library, for machines without its hardware.
 *
 * Everything it says comes from the text file named by FAKE_NVML_STATE, or else "state" beside the library, read anew by
 * every call, so that a test changes the hardware by replacing the file. Lines are "KEY VALUE" for the driver and "gpu INDEX KEY VALUE" for a device:
 *
 *   devices 4            how many there are               gpu 1 error 15        every call on it answers 15 (lost)
 *   init 9               nvmlInit answers 9               gpu 1 memory_mib 900  in use
 *   error 1              every other call answers 1       gpu 1 process 4242    a process computes on it (may be repeated)
 *   driver 580.65        its version                      gpu 1 peer 0          joined to device 0 by NVLink (may be repeated)
 *
 * and for a device also gpu_percent, memory_percent, celsius, milliwatts, limit_milliwatts, millijoules (without it the
 * device counts no energy), throttle (NVML's bits), ecc, remap_pending, remap_failed, mode, mig, nodes (a mask); a value
 * of -CODE makes that one question answer the error CODE. A process may be written PID:MIB or PID:MIB:PERCENT, the
 * percentage being its part of the multiprocessors. Setting the compute mode appends a line to the file, the last of
 * which counts; "gpu 1 set_mode 4" makes it answer the error 4 instead.
 *
 * "gpu 1 mig 1" and lines "mig 1 NUMBER KEY VALUE" make MIG devices: slices (which must be there), computes, total_mib,
 * memory_mib, process. NVML says nothing of their use, power and energy, so neither does this.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OK = 0, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7, UNKNOWN = 999 };
enum { MAX_DEVICES = 64, TOTAL_MIB = 81920, RESERVED_MIB = 600, MAX_SLICES = 7 };

typedef int Result;
/* Points into numbers[], whose element is the device's own index: a GPU's, or from MAX_DEVICES on a MIG device's. */
typedef const int *Device;

static int numbers[MAX_DEVICES * (1 + MAX_SLICES)];

static int is_slice(int device)
{
    return device >= MAX_DEVICES;
}

static int gpu_of(int device)
{
    return is_slice(device) ? (device - MAX_DEVICES) / MAX_SLICES : device;
}

static int slice_of(int device)
{
    return (device - MAX_DEVICES) % MAX_SLICES;
}

static const char *state_path(void)
{
    static char beside[4096];
    const char *named = getenv("FAKE_NVML_STATE");
    Dl_info self;

    if (named != NULL || dladdr((void *)numbers, &self) == 0)
        return named;
    snprintf(beside, sizeof beside, "%s", self.dli_fname);
    char *slash = strrchr(beside, '/');
    snprintf(slash ? slash + 1 : beside, 16, "state");
    return beside;
}

/* Calls visit() with each value of a key of the driver (device -1) or of a device. */
static void each_value(int device, const char *key, void (*visit)(const char *value, void *into), void *into)
{
    const char *path = state_path();
    FILE *file = path ? fopen(path, "r") : NULL;
    char line[256], found[64], value[128];
    int index, slice;

    if (file == NULL)
        return;
    while (fgets(line, sizeof line, file) != NULL) {
        if (device < 0) {
            if (sscanf(line, "%63s %127s", found, value) != 2)
                continue;
        } else if (is_slice(device)) {
            if (sscanf(line, "mig %d %d %63s %127s", &index, &slice, found, value) != 4 || index != gpu_of(device) ||
                slice != slice_of(device))
                continue;
        } else if (sscanf(line, "gpu %d %63s %127s", &index, found, value) != 3 || index != device)
            continue;
        if (strcmp(found, key) == 0)
            visit(value, into);
    }
    fclose(file);
}

static void take_number(const char *value, void *into)
{
    *(long *)into = atol(value);
}

static long number(int device, const char *key, long otherwise)
{
    each_value(device, key, take_number, &otherwise);
    return otherwise;
}

/* The error that a call on this device must answer, or OK. */
static Result fault(int device)
{
    long code = number(-1, "error", OK);

    return (Result)(code != OK || device < 0 ? code : number(gpu_of(device), "error", OK));
}

/* One number of a device, or the error that stands in its place. */
static Result ask(Device device, const char *key, long otherwise, long *answer)
{
    Result failed = fault(*device);

    if (failed != OK)
        return failed;
    *answer = number(*device, key, otherwise);
    return *answer < 0 ? (Result)-*answer : OK;
}

static Result put_text(char *buffer, unsigned size, const char *text)
{
    if (strlen(text) + 1 > size)
        return INSUFFICIENT_SIZE;
    strcpy(buffer, text);
    return OK;
}

Result nvmlInitWithFlags(unsigned flags)
{
    (void)flags;
    return (Result)number(-1, "init", OK);
}

Result nvmlInit_v2(void)
{
    return nvmlInitWithFlags(0);
}

Result nvmlShutdown(void)
{
    return OK;
}

const char *nvmlErrorString(Result result)
{
    return result == 15 ? "GPU is lost" : result == 9 ? "Driver Not Loaded" : "some other error";
}

static void take_text(const char *value, void *into)
{
    snprintf(into, 80, "%s", value);
}

Result nvmlSystemGetDriverVersion(char *buffer, unsigned size)
{
    char version[80] = "580.65.06";

    each_value(-1, "driver", take_text, version);
    return put_text(buffer, size, version);
}

Result nvmlDeviceGetCount_v2(unsigned *count)
{
    *count = (unsigned)number(-1, "devices", 0);
    return fault(-1);
}

Result nvmlDeviceGetHandleByIndex_v2(unsigned index, Device *device)
{
    if (index >= MAX_DEVICES || (long)index >= number(-1, "devices", 0))
        return INVALID_ARGUMENT;
    numbers[index] = (int)index;
    *device = &numbers[index];
    return fault((int)index);
}

Result nvmlDeviceGetName(Device device, char *buffer, unsigned size)
{
    Result failed = fault(*device);

    char name[80] = "NVIDIA H100 80GB HBM3";

    if (is_slice(*device))
        snprintf(name, sizeof name, "NVIDIA H100 80GB HBM3 MIG %ldg.%ldgb", number(*device, "slices", 1),
                 number(*device, "total_mib", 10240) / 1024);
    return failed != OK ? failed : put_text(buffer, size, name);
}

Result nvmlDeviceGetUUID(Device device, char *buffer, unsigned size)
{
    char uuid[64];
    Result failed = fault(*device);

    if (is_slice(*device))
        snprintf(uuid, sizeof uuid, "MIG-%08x-%04x-4000-8000-000000000000", gpu_of(*device) + 1, slice_of(*device) + 1);
    else
        snprintf(uuid, sizeof uuid, "GPU-%08x-0000-4000-8000-000000000000", *device + 1);
    return failed != OK ? failed : put_text(buffer, size, uuid);
}

Result nvmlDeviceGetHandleByUUID(const char *uuid, Device *device)
{
    unsigned number_from_1;

    if (sscanf(uuid, "GPU-%8x", &number_from_1) != 1 || number_from_1 == 0)
        return INVALID_ARGUMENT;
    return nvmlDeviceGetHandleByIndex_v2(number_from_1 - 1, device);
}

struct pci_info {
    char bus_id_legacy[16];
    unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
    char bus_id[32];
};

Result nvmlDeviceGetPciInfo_v3(Device device, struct pci_info *pci)
{
    memset(pci, 0, sizeof *pci);
    pci->domain = 0xfa4e; /* no such domain exists, so the kernel's own table does not know these devices */
    pci->bus = (unsigned)*device + 1;
    snprintf(pci->bus_id, sizeof pci->bus_id, "%08X:%02X:00.0", pci->domain, pci->bus);
    snprintf(pci->bus_id_legacy, sizeof pci->bus_id_legacy, "%04X:%02X:00.0", pci->domain, pci->bus);
    return fault(*device);
}

struct memory {
    unsigned version;
    unsigned long long total, reserved, free, used;
};

static long total_mib(int device)
{
    return number(device, "total_mib", is_slice(device) ? 10240 : TOTAL_MIB);
}

Result nvmlDeviceGetMemoryInfo_v2(Device device, struct memory *memory)
{
    long used;
    Result failed = ask(device, "memory_mib", 0, &used);

    if (failed != OK)
        return failed;
    memory->total = (unsigned long long)total_mib(*device) << 20;
    memory->reserved = is_slice(*device) ? 0 : (unsigned long long)RESERVED_MIB << 20;
    memory->used = (unsigned long long)used << 20;
    memory->free = memory->total - memory->used - memory->reserved;
    return OK;
}

/* As newer drivers answer it: what they reserve counts as used. */
Result nvmlDeviceGetMemoryInfo(Device device, unsigned long long memory[3])
{
    struct memory newer;
    Result failed = nvmlDeviceGetMemoryInfo_v2(device, &newer);

    if (failed != OK)
        return failed;
    memory[0] = newer.total;
    memory[1] = newer.free;
    memory[2] = newer.used + newer.reserved;
    return OK;
}

Result nvmlDeviceGetUtilizationRates(Device device, unsigned rates[2])
{
    long gpu, memory;
    Result failed = is_slice(*device) ? NOT_SUPPORTED : ask(device, "gpu_percent", 0, &gpu);

    if (failed == OK)
        failed = ask(device, "memory_percent", 0, &memory);
    if (failed != OK)
        return failed;
    rates[0] = (unsigned)gpu;
    rates[1] = (unsigned)memory;
    return OK;
}

/* The questions whose answer is one number. */
static Result ask_unsigned(Device device, const char *key, long otherwise, unsigned *answer)
{
    long found;
    Result failed = is_slice(*device) ? NOT_SUPPORTED : ask(device, key, otherwise, &found);

    if (failed == OK)
        *answer = (unsigned)found;
    return failed;
}

static Result ask_long(Device device, const char *key, long otherwise, unsigned long long *answer)
{
    long found;
    Result failed = is_slice(*device) ? NOT_SUPPORTED : ask(device, key, otherwise, &found);

    if (failed == OK)
        *answer = (unsigned long long)found;
    return failed;
}

Result nvmlDeviceGetTemperature(Device device, int sensor, unsigned *celsius)
{
    (void)sensor;
    return ask_unsigned(device, "celsius", 40, celsius);
}

Result nvmlDeviceGetPowerUsage(Device device, unsigned *milliwatts)
{
    return ask_unsigned(device, "milliwatts", 70000, milliwatts);
}

Result nvmlDeviceGetEnforcedPowerLimit(Device device, unsigned *milliwatts)
{
    return ask_unsigned(device, "limit_milliwatts", 700000, milliwatts);
}

Result nvmlDeviceGetTotalEnergyConsumption(Device device, unsigned long long *millijoules)
{
    return ask_long(device, "millijoules", -NOT_SUPPORTED, millijoules);
}

Result nvmlDeviceGetCurrentClocksThrottleReasons(Device device, unsigned long long *reasons)
{
    return ask_long(device, "throttle", 0, reasons);
}

Result nvmlDeviceGetRemappedRows(Device device, unsigned *corrected, unsigned *uncorrected, unsigned *pending,
                                 unsigned *failure)
{
    Result failed = ask_unsigned(device, "remap_pending", 0, pending);

    if (failed == OK)
        failed = ask_unsigned(device, "remap_failed", 0, failure);
    *corrected = 0;
    *uncorrected = failed == OK ? *pending + *failure : 0;
    return failed;
}

Result nvmlDeviceGetMinorNumber(Device device, unsigned *minor)
{
    *minor = (unsigned)*device;
    return fault(*device);
}

Result nvmlDeviceGetMaxMigDeviceCount(Device device, unsigned *count)
{
    *count = MAX_SLICES;
    return fault(*device);
}

Result nvmlDeviceGetMigDeviceHandleByIndex(Device device, unsigned slice, Device *found)
{
    int at;

    if (is_slice(*device) || slice >= MAX_SLICES)
        return INVALID_ARGUMENT;
    at = MAX_DEVICES + *device * MAX_SLICES + (int)slice;
    if (number(at, "slices", 0) <= 0)
        return NOT_FOUND;
    numbers[at] = at;
    *found = &numbers[at];
    return fault(*device);
}

Result nvmlDeviceGetGpuInstanceId(Device device, unsigned *instance)
{
    *instance = is_slice(*device) ? (unsigned)slice_of(*device) + 1 : 0;
    return is_slice(*device) ? fault(*device) : NOT_SUPPORTED;
}

Result nvmlDeviceGetComputeInstanceId(Device device, unsigned *instance)
{
    *instance = 0;
    return is_slice(*device) ? fault(*device) : NOT_SUPPORTED;
}

struct attributes {
    unsigned multiprocessors, copies, decoders, encoders, jpegs, flows, gpu_slices, compute_slices;
    unsigned long long memory_mib;
};

Result nvmlDeviceGetAttributes_v2(Device device, struct attributes *sizes)
{
    if (!is_slice(*device))
        return NOT_SUPPORTED;
    memset(sizes, 0, sizeof *sizes);
    sizes->gpu_slices = (unsigned)number(*device, "slices", 1);
    sizes->compute_slices = (unsigned)number(*device, "computes", sizes->gpu_slices);
    sizes->memory_mib = (unsigned long long)total_mib(*device);
    return fault(*device);
}

Result nvmlDeviceGetComputeMode(Device device, unsigned *mode)
{
    return ask_unsigned(device, "mode", 0, mode);
}

Result nvmlDeviceSetComputeMode(Device device, unsigned mode)
{
    long refusal = number(*device, "set_mode", OK);
    Result failed = fault(*device);
    const char *path = state_path();
    FILE *file;

    if (failed != OK || refusal != OK)
        return failed != OK ? failed : (Result)refusal;
    file = path ? fopen(path, "a") : NULL;
    if (file == NULL)
        return UNKNOWN;
    fprintf(file, "gpu %d mode %u\n", *device, mode);
    fclose(file);
    return OK;
}

Result nvmlDeviceGetMigMode(Device device, unsigned *current, unsigned *pending)
{
    Result failed = ask_unsigned(device, "mig", 0, current);

    *pending = *current;
    return failed;
}

Result nvmlDeviceGetTotalEccErrors(Device device, int error_type, int counter_type, unsigned long long *errors)
{
    (void)error_type, (void)counter_type;
    return ask_long(device, "ecc", 0, errors);
}

Result nvmlDeviceGetMemoryAffinity(Device device, unsigned size, unsigned long *mask, int scope)
{
    long nodes;
    Result failed = ask(device, "nodes", 1, &nodes);

    (void)scope;
    if (failed == OK) {
        memset(mask, 0, size * sizeof *mask);
        mask[0] = (unsigned long)nodes;
    }
    return failed;
}

struct process_info {
    unsigned pid;
    unsigned long long used_gpu_memory;
    unsigned gpu_instance, compute_instance;
};

struct process_list {
    struct process_info *first;
    unsigned room, count;
};

static void take_process(const char *value, void *into)
{
    struct process_list *list = into;

    unsigned pid = 0;
    unsigned long long mib = 0;

    sscanf(value, "%u:%llu", &pid, &mib);
    if (list->count < list->room)
        list->first[list->count] = (struct process_info){ .pid = pid, .used_gpu_memory = mib << 20 };
    list->count++;
}

Result nvmlDeviceGetComputeRunningProcesses_v3(Device device, unsigned *count, struct process_info *processes)
{
    struct process_list list = { processes, processes ? *count : 0, 0 };
    Result failed = fault(*device);

    if (failed != OK)
        return failed;
    each_value(*device, "process", take_process, &list);
    *count = list.count;
    return list.count > list.room ? INSUFFICIENT_SIZE : OK;
}

struct sample {
    unsigned pid;
    unsigned long long time_us;
    unsigned sm, memory, encoder, decoder;
};

struct sample_list {
    struct sample *first;
    unsigned room, count;
};

static void take_sample(const char *value, void *into)
{
    struct sample_list *list = into;
    unsigned pid, percent;

    if (sscanf(value, "%u:%*u:%u", &pid, &percent) != 2)
        return;
    if (list->count < list->room)
        list->first[list->count] = (struct sample){ .pid = pid, .sm = percent };
    list->count++;
}

Result nvmlDeviceGetProcessUtilization(Device device, struct sample *samples, unsigned *count, unsigned long long since)
{
    struct sample_list list = { samples, samples ? *count : 0, 0 };
    Result failed = is_slice(*device) ? NOT_SUPPORTED : fault(*device);

    (void)since;
    if (failed != OK)
        return failed;
    each_value(*device, "process", take_sample, &list);
    *count = list.count;
    if (list.count == 0)
        return NOT_FOUND;
    return list.count > list.room ? INSUFFICIENT_SIZE : OK;
}

struct peer_search {
    long wanted;
    int found;
};

static void compare_peer(const char *value, void *into)
{
    struct peer_search *search = into;

    search->found |= atol(value) == search->wanted;
}

Result nvmlDeviceGetP2PStatus(Device one, Device other, int index, int *status)
{
    struct peer_search search = { *other, 0 };
    Result failed = fault(*one);

    (void)index;
    each_value(*one, "peer", compare_peer, &search);
    *status = search.found ? 0 : 5;
    return failed != OK ? failed : fault(*other);
}
