/* Copyright (c) 2026 hwaccel.gpu contributors
 * GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Stand-in for NVIDIA's management library on a machine with a driver on the host, with only the functions that nvidia-ctk and
 * nvidia-container-runtime use to describe GPUs. Each file /dev/nvidia0, /dev/nvidia1, ... is a GPU, on the bus of the rig's device
 * (KubernetesNode.set_gpus). Callers of a missing function are terminated with its name. Names and structures are those of NVML's API reference.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { SUCCESS = 0, INVALID_ARGUMENT = 2, NOT_FOUND = 6, DRIVER_NOT_LOADED = 9, MOST = 16, FIRST_BUS = 16 };

typedef struct gpu { unsigned index; } *Device;

typedef struct {
    char legacy[16];
    unsigned domain, bus, device, product, subsystem;
    char id[32];
} PciInfo;

static struct gpu gpus[MOST];

static unsigned count(void)
{
    char path[32];
    unsigned found = 0;
    while (found < MOST && (snprintf(path, sizeof path, "/dev/nvidia%u", found), access(path, F_OK) == 0))
        gpus[found].index = found, found++;
    return found;
}

int nvmlSystemGetDriverVersion(char *answer, unsigned size)
{
    FILE *file = fopen("/sys/module/nvidia/version", "r");
    if (!file) return DRIVER_NOT_LOADED;
    int status = fgets(answer, (int)size, file) ? SUCCESS : DRIVER_NOT_LOADED;
    fclose(file);
    answer[strcspn(answer, "\n")] = '\0';
    return status;
}

int nvmlInit_v2(void)
{
    char version[80] = "";
    return nvmlSystemGetDriverVersion(version, sizeof version);
}

int nvmlShutdown(void) { return SUCCESS; }
const char *nvmlErrorString(int status) { return status ? "stand-in: no such thing" : "Success"; }
int nvmlDeviceGetCount_v2(unsigned *answer) { *answer = count(); return SUCCESS; }

int nvmlDeviceGetHandleByIndex_v2(unsigned index, Device *answer)
{
    if (index >= count()) return INVALID_ARGUMENT;
    *answer = &gpus[index];
    return SUCCESS;
}

int nvmlDeviceGetUUID(Device gpu, char *answer, unsigned size)
{
    snprintf(answer, size, "GPU-00000000-0000-4000-8000-%012u", gpu->index);
    return SUCCESS;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, Device *answer)
{
    char own[64];
    for (unsigned index = count(); index-- > 0;) {
        nvmlDeviceGetUUID(&gpus[index], own, sizeof own);
        if (strcmp(own, uuid) == 0) { *answer = &gpus[index]; return SUCCESS; }
    }
    return NOT_FOUND;
}

int nvmlDeviceGetIndex(Device gpu, unsigned *answer) { *answer = gpu->index; return SUCCESS; }
int nvmlDeviceGetMinorNumber(Device gpu, unsigned *answer) { *answer = gpu->index; return SUCCESS; }
int nvmlDeviceIsMigDeviceHandle(Device gpu, unsigned *answer) { (void)gpu; *answer = 0; return SUCCESS; }

int nvmlDeviceGetName(Device gpu, char *answer, unsigned size)
{
    (void)gpu;
    snprintf(answer, size, "NVIDIA H100 80GB HBM3");
    return SUCCESS;
}

int nvmlDeviceGetPciInfo_v3(Device gpu, PciInfo *answer)
{
    memset(answer, 0, sizeof *answer);
    answer->bus = FIRST_BUS + gpu->index;
    answer->product = 0x233010de;
    snprintf(answer->legacy, sizeof answer->legacy, "0000:%02X:00.0", answer->bus);
    snprintf(answer->id, sizeof answer->id, "00000000:%02X:00.0", answer->bus);
    return SUCCESS;
}
