/* A libnvidia-ml.so.1 for machines without a GPU.
 *
 * NVML_STUB_SCENARIO names the machine (see `scenarios` below). Compiled against NVIDIA's own
 * nvml.h, so every signature and structure is the real one. Names, memory totals, compute
 * capabilities and power limits are those nvidia-smi prints for these GPUs; which questions are
 * refused follows the NVML documentation. UUIDs, addresses, processes and the driver's reserve
 * are made up.
 */
#include <nvml.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB (1024ULL * 1024ULL)
#define MAX_GPUS 8
#define MAX_MIG_SLOTS 7
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

struct nvmlDevice_st {
    const char *name;
    unsigned long long total_mib, reserved_mib, used_mib; /* total 0: NOT_SUPPORTED */
    int major, minor;
    unsigned int power_mw;              /* 0: NOT_SUPPORTED */
    unsigned int pcie_generation, pcie_width; /* 0: NOT_SUPPORTED */
    int mig_capable, mig_enabled, mig_pending;
    nvmlGpuVirtualizationMode_t virtualization;
    unsigned int nvlinks;               /* links the GPU has; 0: NOT_SUPPORTED */
    unsigned int nvlinks_active;        /* the first so many are up */
    int nvlink_to_switch;
    int nvlink_peer;                    /* index of the GPU at the far end of a bridge, or -1 */
    int processes_supported;
    const nvmlProcessInfo_t *compute, *graphics;
    unsigned int compute_count, graphics_count;
    nvmlReturn_t open_result;
    int numa_node;
    struct nvmlDevice_st *mig[MAX_MIG_SLOTS];
};

static struct nvmlDevice_st gpus[MAX_GPUS];
static struct nvmlDevice_st mig_devices[MAX_MIG_SLOTS];
static unsigned int gpu_count;
static int initialized;
static nvmlReturn_t init_result;

static const nvmlProcessInfo_t l40s_compute[] = {
    {.pid = 4242, .usedGpuMemory = 20480 * MIB},
    {.pid = 4300, .usedGpuMemory = (unsigned long long)NVML_VALUE_NOT_AVAILABLE},
};
static const nvmlProcessInfo_t l40s_graphics[] = {
    {.pid = 4242, .usedGpuMemory = 20480 * MIB},
    {.pid = 977, .usedGpuMemory = 12 * MIB},
};

static struct nvmlDevice_st bare_metal(const char *name, unsigned long long total_mib, int major,
                                       int minor, unsigned int power_w, unsigned int generation) {
    struct nvmlDevice_st gpu = {.name = name,
                                .total_mib = total_mib,
                                .major = major,
                                .minor = minor,
                                .power_mw = power_w * 1000,
                                .pcie_generation = generation,
                                .pcie_width = 16,
                                .nvlink_peer = -1,
                                .processes_supported = 1};
    return gpu;
}

static void h100_x8_nvswitch(void) {
    for (gpu_count = 0; gpu_count < 8; gpu_count++) {
        gpus[gpu_count] = bare_metal("NVIDIA H100 80GB HBM3", 81559, 9, 0, 700, 5);
        gpus[gpu_count].reserved_mib = 551;
        gpus[gpu_count].mig_capable = 1;
        gpus[gpu_count].nvlinks = gpus[gpu_count].nvlinks_active = 18;
        gpus[gpu_count].nvlink_to_switch = 1;
        gpus[gpu_count].numa_node = gpu_count / 4;
    }
}

static void h100_x2_nvlinks_down(void) {
    h100_x8_nvswitch();
    gpu_count = 2;
    gpus[1].nvlinks_active = 0;
}

static void h100_mig(void) {
    h100_x8_nvswitch();
    gpu_count = 1;
    gpus[0].mig_enabled = gpus[0].mig_pending = 1;
    for (int i = 0; i < 2; i++) {
        mig_devices[i].name = "NVIDIA H100 80GB HBM3 MIG 3g.40gb";
        mig_devices[i].total_mib = 40448;
        gpus[0].mig[i * 4] = &mig_devices[i]; /* the slots between stay empty */
    }
}

static void gb10(void) {
    gpus[0] = bare_metal("NVIDIA GB10", 0, 12, 1, 0, 5);
    gpu_count = 1;
}

static void l40s_x2_pcie(void) {
    for (gpu_count = 0; gpu_count < 2; gpu_count++) {
        gpus[gpu_count] = bare_metal("NVIDIA L40S", 46068, 8, 9, 350, 4);
        gpus[gpu_count].reserved_mib = 600;
    }
    gpus[0].used_mib = 20492;
    gpus[0].compute = l40s_compute;
    gpus[0].compute_count = COUNT(l40s_compute);
    gpus[0].graphics = l40s_graphics;
    gpus[0].graphics_count = COUNT(l40s_graphics);
}

static void a6000_x4_bridged_in_pairs(void) {
    for (gpu_count = 0; gpu_count < 4; gpu_count++) {
        gpus[gpu_count] = bare_metal("NVIDIA RTX A6000", 49140, 8, 6, 300, 4);
        gpus[gpu_count].nvlinks = gpus[gpu_count].nvlinks_active = 4;
        gpus[gpu_count].nvlink_peer = gpu_count ^ 1;
        gpus[gpu_count].numa_node = gpu_count / 2;
    }
}

static void l40s_vgpu(void) {
    gpus[0] = bare_metal("NVIDIA L40S-24C", 24576, 8, 9, 0, 0);
    gpus[0].pcie_width = 0;
    gpus[0].virtualization = NVML_GPU_VIRTUALIZATION_MODE_VGPU;
    gpus[0].processes_supported = 0;
    gpu_count = 1;
}

static void second_gpu_lost(void) {
    l40s_x2_pcie();
    gpus[1].open_result = NVML_ERROR_GPU_IS_LOST;
}

static void name_not_utf8(void) {
    gpus[0] = bare_metal("NVIDIA \xff", 46068, 8, 9, 350, 4);
    gpu_count = 1;
}

static void driver_not_loaded(void) { init_result = NVML_ERROR_DRIVER_NOT_LOADED; }

static void no_gpus(void) { gpu_count = 0; }

static const struct {
    const char *name;
    void (*fill)(void);
} scenarios[] = {
    {"8xh100", h100_x8_nvswitch},
    {"2xh100-nvlinks-down", h100_x2_nvlinks_down},
    {"h100-mig", h100_mig},
    {"gb10", gb10},
    {"2xl40s", l40s_x2_pcie},
    {"4xa6000-bridged", a6000_x4_bridged_in_pairs},
    {"vgpu", l40s_vgpu},
    {"gpu-lost", second_gpu_lost},
    {"name-not-utf8", name_not_utf8},
    {"driver-not-loaded", driver_not_loaded},
    {"no-gpus", no_gpus},
};

nvmlReturn_t nvmlInitWithFlags(unsigned int flags) {
    const char *wanted = getenv("NVML_STUB_SCENARIO");
    (void)flags;
    memset(gpus, 0, sizeof(gpus));
    memset(mig_devices, 0, sizeof(mig_devices));
    gpu_count = 0;
    init_result = NVML_ERROR_UNKNOWN; /* no such scenario */
    for (size_t i = 0; wanted && i < COUNT(scenarios); i++) {
        if (strcmp(wanted, scenarios[i].name) == 0) {
            init_result = NVML_SUCCESS;
            scenarios[i].fill();
        }
    }
    initialized = init_result == NVML_SUCCESS;
    return init_result;
}

nvmlReturn_t nvmlShutdown(void) {
    initialized = 0;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count) {
    if (!initialized) return NVML_ERROR_UNINITIALIZED;
    *count = gpu_count;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device) {
    if (index >= gpu_count) return NVML_ERROR_INVALID_ARGUMENT;
    *device = &gpus[index];
    return gpus[index].open_result;
}

static nvmlReturn_t put_text(char *to, unsigned int length, const char *text) {
    if (strlen(text) + 1 > length) return NVML_ERROR_INSUFFICIENT_SIZE;
    strcpy(to, text);
    return NVML_SUCCESS;
}

static nvmlReturn_t put_number(unsigned int *to, unsigned int number) {
    if (number == 0) return NVML_ERROR_NOT_SUPPORTED;
    *to = number;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int length) {
    return put_text(version, length, "580.126.16");
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version) {
    *version = 13000;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlSystemGetProcessName(unsigned int pid, char *name, unsigned int length) {
    return pid == 4300 ? NVML_ERROR_NO_PERMISSION
                       : put_text(name, length, pid == 977 ? "/usr/lib/xorg/Xorg" : "python3");
}

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned int length) {
    return put_text(name, length, device->name);
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned int length) {
    snprintf(uuid, length, "GPU-00000000-0000-0000-0000-%012x", (unsigned int)(device - gpus));
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory) {
    if (memory->version != nvmlMemory_v2) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (device->total_mib == 0) return NVML_ERROR_NOT_SUPPORTED;
    memory->total = device->total_mib * MIB;
    memory->reserved = device->reserved_mib * MIB;
    memory->used = device->used_mib * MIB;
    memory->free = memory->total - memory->reserved - memory->used;
    return NVML_SUCCESS;
}

/* The first version of the answer counts the driver's reserve as used. */
nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory) {
    if (device->total_mib == 0) return NVML_ERROR_NOT_SUPPORTED;
    memory->total = device->total_mib * MIB;
    memory->used = (device->used_mib + device->reserved_mib) * MIB;
    memory->free = memory->total - memory->used;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major, int *minor) {
    *major = device->major;
    *minor = device->minor;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t device, unsigned int *limit) {
    return put_number(limit, device->power_mw);
}

nvmlReturn_t nvmlDeviceGetMaxPcieLinkGeneration(nvmlDevice_t device, unsigned int *generation) {
    return put_number(generation, device->pcie_generation);
}

nvmlReturn_t nvmlDeviceGetMaxPcieLinkWidth(nvmlDevice_t device, unsigned int *width) {
    return put_number(width, device->pcie_width);
}

nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned int *current,
                                  unsigned int *pending) {
    if (!device->mig_capable) return NVML_ERROR_NOT_SUPPORTED;
    *current = device->mig_enabled;
    *pending = device->mig_pending;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned int *count) {
    *count = device->mig_capable ? MAX_MIG_SLOTS : 0;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned int index,
                                                 nvmlDevice_t *mig) {
    if (index >= MAX_MIG_SLOTS) return NVML_ERROR_INVALID_ARGUMENT;
    if (!device->mig[index]) return NVML_ERROR_NOT_FOUND;
    *mig = device->mig[index];
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetVirtualizationMode(nvmlDevice_t device,
                                             nvmlGpuVirtualizationMode_t *mode) {
    *mode = device->virtualization;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t device, unsigned int link,
                                      nvmlEnableState_t *active) {
    if (device->nvlinks == 0) return NVML_ERROR_NOT_SUPPORTED;
    if (link >= device->nvlinks) return NVML_ERROR_INVALID_ARGUMENT;
    *active = link < device->nvlinks_active ? NVML_FEATURE_ENABLED : NVML_FEATURE_DISABLED;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetNvLinkRemoteDeviceType(nvmlDevice_t device, unsigned int link,
                                                 nvmlIntNvLinkDeviceType_t *type) {
    if (link >= device->nvlinks_active) return NVML_ERROR_NOT_SUPPORTED;
    *type = device->nvlink_to_switch ? NVML_NVLINK_DEVICE_TYPE_SWITCH : NVML_NVLINK_DEVICE_TYPE_GPU;
    return NVML_SUCCESS;
}

static nvmlReturn_t put_address(nvmlPciInfo_t *pci, int index) {
    memset(pci, 0, sizeof(*pci));
    snprintf(pci->busId, sizeof(pci->busId), "00000000:%02X:00.0", 0x1A + 0x10 * index);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci) {
    return put_address(pci, (int)(device - gpus));
}

nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t device, unsigned int link,
                                                 nvmlPciInfo_t *pci) {
    if (link >= device->nvlinks_active) return NVML_ERROR_NOT_SUPPORTED;
    /* an NVSwitch has an address that is no GPU's */
    return put_address(pci, device->nvlink_to_switch ? MAX_GPUS + 1 : device->nvlink_peer);
}

nvmlReturn_t nvmlDeviceGetP2PStatus(nvmlDevice_t first, nvmlDevice_t second,
                                    nvmlGpuP2PCapsIndex_t capability,
                                    nvmlGpuP2PStatus_t *status) {
    int bridged = first->nvlink_peer == (int)(second - gpus);
    int switched = first->nvlink_to_switch && second->nvlink_to_switch;
    if (capability != NVML_P2P_CAPS_INDEX_NVLINK) return NVML_ERROR_INVALID_ARGUMENT;
    *status = bridged || switched ? NVML_P2P_STATUS_OK : NVML_P2P_STATUS_NOT_SUPPORTED;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t first, nvmlDevice_t second,
                                                 nvmlGpuTopologyLevel_t *level) {
    *level = first->numa_node == second->numa_node ? NVML_TOPOLOGY_NODE : NVML_TOPOLOGY_SYSTEM;
    return NVML_SUCCESS;
}

static nvmlReturn_t put_processes(nvmlDevice_t device, const nvmlProcessInfo_t *processes,
                                  unsigned int count, unsigned int *room, nvmlProcessInfo_t *to) {
    unsigned int given = *room;
    if (!device->processes_supported) return NVML_ERROR_NOT_SUPPORTED;
    *room = count;
    if (given < count) return NVML_ERROR_INSUFFICIENT_SIZE;
    if (count) memcpy(to, processes, count * sizeof(*processes));
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int *count,
                                                     nvmlProcessInfo_t *to) {
    return put_processes(device, device->compute, device->compute_count, count, to);
}

nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t device, unsigned int *count,
                                                      nvmlProcessInfo_t *to) {
    return put_processes(device, device->graphics, device->graphics_count, count, to);
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_t device, unsigned int *count,
                                                     nvmlProcessInfo_v2_t *to) {
    return put_processes(device, device->compute, device->compute_count, count, to);
}

nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v2(nvmlDevice_t device, unsigned int *count,
                                                      nvmlProcessInfo_v2_t *to) {
    return put_processes(device, device->graphics, device->graphics_count, count, to);
}
