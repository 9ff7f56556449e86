/* Copyright (c) 2026 hwaccel.gpu contributors
 * GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Stand-in for NVIDIA's management library on a machine without a GPU, with the functions that NVIDIA's container toolkit, device plugin and GPU
 * feature discovery call. Callers of a missing function are terminated with its name ("undefined symbol: nvml...").
 *
 * A GPU exists where its device file does: /dev/nvidia0, /dev/nvidia1, ... Its properties are in DESCRIPTION, which `stand-in machine` writes
 * (tests/node/components/stand-in/description.go has the format). Without this file, all GPUs are healthy H100 without MIG.
 * Names, structures, numbers and semantics are those of NVML's API reference (nvml.h in NVIDIA/go-nvml v0.13.0-1).
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define DESCRIPTION "/sys/module/nvidia_standin/gpus"
#define MODULE "/sys/module/nvidia/version"

enum {
    SUCCESS = 0, UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NO_PERMISSION = 4, NOT_FOUND = 6, DRIVER_NOT_LOADED = 9, TIMEOUT = 10, GPU_IS_LOST = 15,
    LIB_RM_VERSION_MISMATCH = 18, MOST_GPUS = 16, MOST_SLICES = 7, MOST_PROFILES = 17, MOST_DEVICES = MOST_GPUS * (1 + MOST_SLICES), FIRST_BUS = 16,
    BRAND_NVIDIA = 14, ARCHITECTURE_HOPPER = 9, MIG_NOT_SUPPORTED = -1, TOPOLOGY_SYSTEM = 50, OFF_THE_BUS = 79,
    EVENT_SINGLE_BIT = 1, EVENT_DOUBLE_BIT = 2, EVENT_XID = 8, NO_INSTANCE = -1,
};

/* A GPU, or a part of one: then whole is the GPU, and profile that of its GPU instance. */
typedef struct device {
    unsigned index, instance, profile;
    char uuid[64], name[96];
    unsigned long long memory;
    unsigned major, minor, device;
    int mig, xid;
    struct device *whole;
} *Device;

typedef struct {
    unsigned id, peers, slices, instances, processors, copy, decoder, encoder, jpeg, ofa;
    unsigned long long memory;
} Profile;

typedef struct { char legacy[16]; unsigned domain, bus, device, product, subsystem; char id[32]; } PciInfo;
typedef struct { unsigned long long total, free, used; } Memory;
typedef struct { unsigned processors, copy, decoder, encoder, jpeg, ofa, slices, compute; unsigned long long memory; } Attributes;
typedef struct { Device gpu; unsigned id, profile, start, size; } GpuInstanceInfo;
typedef struct { Device gpu, instance; unsigned id, profile, start, size; } ComputeInstanceInfo;
typedef struct { unsigned id, slices, instances, processors, copy, decoder, encoder, jpeg, ofa; } ComputeProfile;
typedef struct { Device gpu; unsigned long long kind, data; unsigned instance, compute; } Event;
typedef struct set { unsigned long long registered[MOST_GPUS]; int xid[MOST_GPUS]; } *EventSet;

typedef struct {
    struct device devices[MOST_DEVICES];
    unsigned gpus, all;
    int known[MOST_PROFILES], cuda;
    Profile profiles[MOST_PROFILES];
} Machine;

static Machine machine;

static void version(char *answer, unsigned size)
{
    FILE *file = fopen(MODULE, "r");
    answer[0] = '\0';
    if (!file) return;
    if (fgets(answer, (int)size, file)) answer[strcspn(answer, "\n")] = '\0';
    fclose(file);
}

static void describe(Machine *read, const char *line, unsigned branch)
{
    struct device one = {0};
    Profile profile = {.peers = 1};
    unsigned number, value;
    if (sscanf(line, "gpu %u %63s %llu %u.%u %d %d %x %95[^\n]", &number, one.uuid, &one.memory, &one.major, &one.minor, &one.mig, &one.xid,
               &one.device, one.name) == 9) {
        one.index = number;
        if (number < read->gpus) read->devices[number] = one;
    } else if (sscanf(line, "mig %u %u %u %63s", &number, &one.instance, &one.profile, one.uuid) == 4) {
        one.whole = &machine.devices[number];
        if (number < read->gpus && read->all < MOST_DEVICES && one.profile < MOST_PROFILES) read->devices[read->all++] = one;
    } else if (sscanf(line, "profile %u %u %u %u %u %u %u %u %u %u %llu", &number, &profile.id, &profile.slices, &profile.instances,
                      &profile.processors, &profile.copy, &profile.decoder, &profile.encoder, &profile.jpeg, &profile.ofa, &profile.memory) == 11) {
        if (number < MOST_PROFILES) read->profiles[number] = profile, read->known[number] = 1;
    } else if (sscanf(line, "cuda %u %u", &number, &value) == 2 && number == branch) {
        read->cuda = (int)value;
    }
}

/* Reads everything anew, because the rig changes it at any time. Handles stay valid: they are places in the machine. Other threads read it without a
 * lock, so that it is written only where it changes.
 */
static void look(void)
{
    static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
    static Machine read;
    char path[32], line[256], loaded[80];
    pthread_mutex_lock(&one_at_a_time);
    memset(&read, 0, sizeof read);
    while (read.gpus < MOST_GPUS && (snprintf(path, sizeof path, "/dev/nvidia%u", read.gpus), access(path, F_OK) == 0)) {
        Device one = &read.devices[read.gpus];
        *one = (struct device){.index = read.gpus, .memory = 81559, .major = 9, .device = 0x233010de, .mig = MIG_NOT_SUPPORTED};
        snprintf(one->uuid, sizeof one->uuid, "GPU-00000000-0000-4000-8000-%012u", read.gpus++);
        snprintf(one->name, sizeof one->name, "NVIDIA H100 80GB HBM3");
    }
    read.all = read.gpus;
    version(loaded, sizeof loaded);
    FILE *file = fopen(DESCRIPTION, "r");
    while (file && fgets(line, sizeof line, file)) describe(&read, line, (unsigned)atoi(loaded));
    if (file) fclose(file);
    if (memcmp(&read, &machine, sizeof read) != 0) machine = read;
    pthread_mutex_unlock(&one_at_a_time);
}

/* Whether the module has the version in the name of this file, if its name has one. */
static int matches(const char *loaded)
{
    Dl_info own;
    char *path = dladdr((void *)matches, &own) ? realpath(own.dli_fname, NULL) : NULL;
    const char *suffix = path ? strstr(path, ".so.") : NULL;
    int same = !suffix || !strchr(suffix + 4, '.') || strcmp(suffix + 4, loaded) == 0;
    free(path);
    return same;
}

static int lost(Device gpu) { return (gpu->whole ? gpu->whole : gpu)->xid == OFF_THE_BUS; }

const char *nvmlErrorString(int status)
{
    switch (status) {
    case SUCCESS: return "Success";
    case UNINITIALIZED: return "Uninitialized";
    case INVALID_ARGUMENT: return "Invalid Argument";
    case NOT_SUPPORTED: return "Not Supported";
    case NO_PERMISSION: return "Insufficient Permissions";
    case NOT_FOUND: return "Not Found";
    case DRIVER_NOT_LOADED: return "Driver Not Loaded";
    case TIMEOUT: return "Timeout";
    case GPU_IS_LOST: return "GPU is lost";
    case LIB_RM_VERSION_MISMATCH: return "Driver/library version mismatch";
    }
    return "Unknown Error";
}

int nvmlSystemGetDriverVersion(char *answer, unsigned size)
{
    version(answer, size);
    return answer[0] ? SUCCESS : DRIVER_NOT_LOADED;
}

int nvmlSystemGetNVMLVersion(char *answer, unsigned size) { return nvmlSystemGetDriverVersion(answer, size); }

/* The first of several initializations checks the driver and opens it, and the last end closes it: until then its modules are in use. */
static pthread_mutex_t users_lock = PTHREAD_MUTEX_INITIALIZER;
static int users, opened = -1;

static int initialize(void)
{
    char loaded[80];
    version(loaded, sizeof loaded);
    if (!loaded[0]) return DRIVER_NOT_LOADED;
    if (!matches(loaded)) return LIB_RM_VERSION_MISMATCH;
    opened = open("/dev/nvidiactl", O_RDONLY | O_CLOEXEC);
    return access("/dev/nvidiactl", F_OK) == 0 ? SUCCESS : NO_PERMISSION;
}

int nvmlInit_v2(void)
{
    pthread_mutex_lock(&users_lock);
    int status = users ? SUCCESS : initialize();
    if (status == SUCCESS) users++;
    pthread_mutex_unlock(&users_lock);
    if (status == SUCCESS) look();
    return status;
}

int nvmlInitWithFlags(unsigned flags) { (void)flags; return nvmlInit_v2(); }

int nvmlShutdown(void)
{
    pthread_mutex_lock(&users_lock);
    int status = users ? SUCCESS : UNINITIALIZED;
    if (users && --users == 0 && opened >= 0) close(opened), opened = -1;
    pthread_mutex_unlock(&users_lock);
    return status;
}

int nvmlSystemGetCudaDriverVersion(int *answer)
{
    look();
    *answer = machine.cuda;
    return machine.cuda ? SUCCESS : NOT_SUPPORTED;
}

int nvmlSystemGetCudaDriverVersion_v2(int *answer) { return nvmlSystemGetCudaDriverVersion(answer); }
int nvmlDeviceGetCount_v2(unsigned *answer) { look(); *answer = machine.gpus; return SUCCESS; }

int nvmlDeviceGetHandleByIndex_v2(unsigned index, Device *answer)
{
    look();
    if (index >= machine.gpus) return INVALID_ARGUMENT;
    *answer = &machine.devices[index];
    return lost(*answer) ? GPU_IS_LOST : SUCCESS;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, Device *answer)
{
    look();
    for (unsigned one = 0; one < machine.all; one++)
        if (strcmp(machine.devices[one].uuid, uuid) == 0) { *answer = &machine.devices[one]; return lost(*answer) ? GPU_IS_LOST : SUCCESS; }
    return NOT_FOUND;
}

int nvmlDeviceGetPciInfo_v3(Device gpu, PciInfo *answer)
{
    if (gpu->whole) return NOT_SUPPORTED;
    memset(answer, 0, sizeof *answer);
    answer->bus = FIRST_BUS + gpu->index;
    answer->product = gpu->device;
    snprintf(answer->legacy, sizeof answer->legacy, "0000:%02X:00.0", answer->bus & 0xff);
    snprintf(answer->id, sizeof answer->id, "00000000:%02X:00.0", answer->bus & 0xff);
    return SUCCESS;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *id, Device *answer)
{
    PciInfo info;
    look();
    for (unsigned one = 0; one < machine.gpus; one++) {
        nvmlDeviceGetPciInfo_v3(&machine.devices[one], &info);
        if (strcasecmp(info.id, id) == 0 || strcasecmp(info.legacy, id) == 0) { *answer = &machine.devices[one]; return SUCCESS; }
    }
    return NOT_FOUND;
}

int nvmlDeviceGetUUID(Device gpu, char *answer, unsigned size) { snprintf(answer, size, "%s", gpu->uuid); return SUCCESS; }
int nvmlDeviceGetIndex(Device gpu, unsigned *answer) { *answer = gpu->index; return SUCCESS; }

int nvmlDeviceGetMinorNumber(Device gpu, unsigned *answer)
{
    *answer = gpu->index;
    return gpu->whole ? NOT_SUPPORTED : SUCCESS;
}

static const Profile *profile_of(Device part) { return &machine.profiles[part->profile]; }

int nvmlDeviceGetName(Device gpu, char *answer, unsigned size)
{
    snprintf(answer, size, "%s", (gpu->whole ? gpu->whole : gpu)->name);
    return SUCCESS;
}

int nvmlDeviceGetMemoryInfo(Device gpu, Memory *answer)
{
    if (lost(gpu)) return GPU_IS_LOST;
    answer->total = answer->free = (gpu->whole ? profile_of(gpu)->memory : gpu->memory) << 20;
    answer->used = 0;
    return SUCCESS;
}

int nvmlDeviceGetCudaComputeCapability(Device gpu, int *major, int *minor)
{
    Device whole = gpu->whole ? gpu->whole : gpu;
    *major = (int)whole->major;
    *minor = (int)whole->minor;
    return SUCCESS;
}

int nvmlDeviceGetBrand(Device gpu, unsigned *answer) { (void)gpu; *answer = BRAND_NVIDIA; return SUCCESS; }
int nvmlDeviceGetArchitecture(Device gpu, unsigned *answer) { (void)gpu; *answer = ARCHITECTURE_HOPPER; return SUCCESS; }

/* GPUs without a fabric, links between each other, or an addressing mode. */
int nvmlDeviceGetGpuFabricInfo(Device gpu, void *answer) { (void)gpu, (void)answer; return NOT_SUPPORTED; }
int nvmlDeviceGetAddressingMode(Device gpu, void *answer) { (void)gpu, (void)answer; return NOT_SUPPORTED; }
int nvmlDeviceGetNvLinkState(Device gpu, unsigned link, unsigned *answer) { (void)gpu, (void)link, (void)answer; return NOT_SUPPORTED; }

int nvmlDeviceGetTopologyCommonAncestor(Device gpu, Device other, unsigned *answer)
{
    (void)gpu, (void)other;
    *answer = TOPOLOGY_SYSTEM;
    return SUCCESS;
}

int nvmlDeviceGetMigMode(Device gpu, unsigned *now, unsigned *next)
{
    if (gpu->mig == MIG_NOT_SUPPORTED || gpu->whole) return NOT_SUPPORTED;
    *now = *next = (unsigned)gpu->mig;
    return SUCCESS;
}

int nvmlDeviceGetMaxMigDeviceCount(Device gpu, unsigned *answer)
{
    *answer = gpu->mig == MIG_NOT_SUPPORTED ? 0 : MOST_SLICES;
    return SUCCESS;
}

int nvmlDeviceGetMigDeviceHandleByIndex(Device gpu, unsigned index, Device *answer)
{
    for (unsigned one = machine.gpus, place = 0; one < machine.all; one++)
        if (machine.devices[one].whole == gpu && place++ == index) { *answer = &machine.devices[one]; return SUCCESS; }
    return NOT_FOUND;
}

int nvmlDeviceIsMigDeviceHandle(Device gpu, unsigned *answer) { *answer = gpu->whole != NULL; return SUCCESS; }
int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(Device part, Device *answer) { *answer = part->whole; return part->whole ? SUCCESS : INVALID_ARGUMENT; }
int nvmlDeviceGetGpuInstanceId(Device part, unsigned *answer) { *answer = part->instance; return part->whole ? SUCCESS : NOT_SUPPORTED; }
int nvmlDeviceGetComputeInstanceId(Device part, unsigned *answer) { *answer = 0; return part->whole ? SUCCESS : NOT_SUPPORTED; }

int nvmlDeviceGetAttributes_v2(Device part, Attributes *answer)
{
    if (!part->whole) return NOT_SUPPORTED;
    const Profile *own = profile_of(part);
    *answer = (Attributes){own->processors, own->copy, own->decoder, own->encoder, own->jpeg, own->ofa, own->slices, own->slices, own->memory};
    return SUCCESS;
}

int nvmlDeviceGetGpuInstanceProfileInfo(Device gpu, unsigned number, Profile *answer)
{
    if (number >= MOST_PROFILES) return INVALID_ARGUMENT;
    if (gpu->mig == MIG_NOT_SUPPORTED || !machine.known[number]) return NOT_SUPPORTED;
    *answer = machine.profiles[number];
    return SUCCESS;
}

/* An instance of a GPU has one compute instance with all of its slices, so the handle of either is that of the MIG device. */
int nvmlDeviceGetGpuInstanceById(Device gpu, unsigned id, Device *answer)
{
    for (unsigned one = machine.gpus; one < machine.all; one++)
        if (machine.devices[one].whole == gpu && machine.devices[one].instance == id) { *answer = &machine.devices[one]; return SUCCESS; }
    return NOT_FOUND;
}

int nvmlGpuInstanceGetInfo(Device part, GpuInstanceInfo *answer)
{
    *answer = (GpuInstanceInfo){part->whole, part->instance, profile_of(part)->id, 0, profile_of(part)->slices};
    return SUCCESS;
}

int nvmlGpuInstanceGetComputeInstanceById(Device part, unsigned id, Device *answer)
{
    *answer = part;
    return id ? NOT_FOUND : SUCCESS;
}

/* Numbers of compute instance profiles by their slices: NVML_COMPUTE_INSTANCE_PROFILE_7_SLICE is 4. */
static unsigned compute_number(unsigned slices) { return slices == 7 ? 4 : slices - 1; }

int nvmlComputeInstanceGetInfo_v2(Device part, ComputeInstanceInfo *answer)
{
    unsigned slices = profile_of(part)->slices;
    *answer = (ComputeInstanceInfo){part->whole, part, 0, compute_number(slices), 0, slices};
    return SUCCESS;
}

int nvmlGpuInstanceGetComputeInstanceProfileInfo(Device part, unsigned number, unsigned engines, ComputeProfile *answer)
{
    const Profile *own = profile_of(part);
    if (engines) return INVALID_ARGUMENT;
    if (number != compute_number(own->slices)) return NOT_SUPPORTED;
    *answer = (ComputeProfile){number, own->slices, 1, own->processors, own->copy, own->decoder, own->encoder, own->jpeg, own->ofa};
    return SUCCESS;
}

int nvmlDeviceGetSupportedEventTypes(Device gpu, unsigned long long *answer)
{
    *answer = EVENT_SINGLE_BIT | EVENT_DOUBLE_BIT | EVENT_XID;
    return lost(gpu) ? GPU_IS_LOST : SUCCESS;
}

int nvmlEventSetCreate(EventSet *answer) { *answer = calloc(1, sizeof **answer); return SUCCESS; }
int nvmlEventSetFree(EventSet set) { free(set); return SUCCESS; }

/* Earlier errors are not reported. */
int nvmlDeviceRegisterEvents(Device gpu, unsigned long long kinds, EventSet set)
{
    if (gpu->whole) return NOT_SUPPORTED;
    set->registered[gpu->index] |= kinds;
    set->xid[gpu->index] = gpu->xid;
    return SUCCESS;
}

/* An error is reported once, when the description begins to have it. */
int nvmlEventSetWait_v2(EventSet set, Event *answer, unsigned milliseconds)
{
    for (unsigned waited = 0;; waited += 100) {
        look();
        for (unsigned one = 0; one < machine.gpus; one++) {
            int before = set->xid[one], now = machine.devices[one].xid;
            set->xid[one] = now;
            if (!now || now == before || !(set->registered[one] & EVENT_XID)) continue;
            *answer = (Event){&machine.devices[one], EVENT_XID, (unsigned)now, (unsigned)NO_INSTANCE, (unsigned)NO_INSTANCE};
            return SUCCESS;
        }
        if (waited >= milliseconds) return TIMEOUT;
        nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    }
}
