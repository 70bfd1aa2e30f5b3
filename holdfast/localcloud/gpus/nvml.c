/* libnvidia-ml.so.1 of a node without GPUs: what clients of NVIDIA's library ask, answered from a text file.
 *
 * The file is read anew at every call, so whoever writes it decides what the driver says next. A later line wins:
 *
 *   count=8                    GPUs of the node; without the file there is no driver
 *   name=...  driver=...  memory_mib=81559  links=18
 *   gpu3.pci=0000:86:00.0      where it is
 *   gpu3.result=15             every call about it answers this nvmlReturn_t; 15 is "GPU is lost"
 *   gpu3.remap=0,1,1,0         rows remapped: correctable, uncorrectable; pending, failure
 *   gpu3.recovery=2            nvmlDeviceGpuRecoveryAction_t
 *   gpu3.ecc=5,0               memory errors since the driver was loaded: corrected, uncorrected
 *   gpu3.ecc_rate=100,1804.5   corrected errors in a second more, since that many seconds after boot
 *   gpu3.temp=91  gpu3.clocks=0x40  gpu3.power=70000  gpu3.util=99,40  gpu3.link17=0  gpu3.fabric=3,0  gpu3.xid=79
 *   device=PATH                every call opens this first, as the true library opens the driver's device
 *
 * A function that is not here is not there for a client either, as with an old driver. Numbers: nvml.h of driver 570.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#ifndef ANSWERS
#define ANSWERS "/run/holdfast/gpus"
#endif
#define MOST 16
enum { SUCCESS, UNINITIALIZED, INVALID_ARGUMENT, NOT_SUPPORTED, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7, NO_DRIVER = 9,
       TIMEOUT = 10, UNKNOWN = 999, LOST = 15 };

typedef struct gpu { unsigned index; } *gpu_t;
typedef unsigned long long u64;
static struct gpu gpus[MOST];
static int initialized;

/* The value of a key; its last line wins. */
static int find(const char *key, char *value, size_t size) {
    FILE *file = fopen(ANSWERS, "re");
    char line[512];
    size_t length = strlen(key);
    int found = 0;

    if (!file)
        return 0;
    while (fgets(line, sizeof line, file))
        if (!strncmp(line, key, length) && line[length] == '=') {
            line[strcspn(line, "\n")] = 0;
            snprintf(value, size, "%s", line + length + 1);
            found = 1;
        }
    fclose(file);
    return found;
}

static long number(const char *key, long otherwise) {
    char value[64];
    return find(key, value, sizeof value) ? strtol(value, NULL, 0) : otherwise;
}

static int of(gpu_t gpu, const char *what, char *value, size_t size) {
    char key[64];
    snprintf(key, sizeof key, "gpu%u.%s", gpu->index, what);
    return find(key, value, size);
}

static long one(gpu_t gpu, const char *what, long otherwise) {
    char value[64];
    return of(gpu, what, value, sizeof value) ? strtol(value, NULL, 0) : otherwise;
}

/* What the kernel's part of the driver says before it does anything. */
static int driver(void) {
    char path[256];
    if (find("device", path, sizeof path)) {
        int device = open(path, O_RDONLY | O_CLOEXEC);
        if (device < 0 && errno != ENOENT && errno != ENOTCONN && errno != ECONNABORTED)
            return UNKNOWN;
        if (device >= 0)
            close(device);
    }
    return number("count", -1) < 0 ? NO_DRIVER : SUCCESS;
}

static int about(gpu_t gpu) {
    int result = initialized ? driver() : UNINITIALIZED;
    if (result != SUCCESS)
        return result;
    if (!gpu || gpu < gpus || gpu >= gpus + MOST)
        return INVALID_ARGUMENT;
    return (int)one(gpu, "result", SUCCESS);
}

static int about_all(void) { return initialized ? driver() : UNINITIALIZED; }

#define CHECK(expression)            \
    do {                             \
        int result_ = (expression);  \
        if (result_ != SUCCESS)      \
            return result_;          \
    } while (0)

static int text(char *to, unsigned size, const char *from) {
    if (strlen(from) >= size)
        return INSUFFICIENT_SIZE;
    strcpy(to, from);
    return SUCCESS;
}

/* --- the library */

int nvmlInit_v2(void) {
    int result = driver();
    if (result == SUCCESS)
        initialized++;
    return result;
}
int nvmlInit(void) { return nvmlInit_v2(); }
int nvmlInitWithFlags(unsigned flags) { (void)flags; return nvmlInit_v2(); }
int nvmlShutdown(void) {
    if (!initialized)
        return UNINITIALIZED;
    initialized--;
    return SUCCESS;
}
const char *nvmlErrorString(int result) {
    static const char *const said[] = {
        "Success", "Uninitialized", "Invalid Argument", "Not Supported", "Insufficient Permissions",
        "Already Initialized", "Not Found", "Insufficient Size", "Insufficient External Power", "Driver Not Loaded",
        "Timeout", "Interrupt Request Issue", "NVML Shared Library Not Found", "Function Not Found",
        "Corrupted infoROM", "GPU is lost", "GPU requires reset",
    };
    return result >= 0 && result < (int)(sizeof said / sizeof *said) ? said[result] : "Unknown Error";
}
int nvmlSystemGetDriverVersion(char *version, unsigned size) {
    char value[80] = "570.148.08";
    CHECK(about_all());
    find("driver", value, sizeof value);
    return text(version, size, value);
}
int nvmlSystemGetNVMLVersion(char *version, unsigned size) { CHECK(about_all()); return text(version, size, "12.570.148.08"); }
int nvmlSystemGetCudaDriverVersion_v2(int *version) { CHECK(about_all()); *version = 12080; return SUCCESS; }
int nvmlSystemGetCudaDriverVersion(int *version) { return nvmlSystemGetCudaDriverVersion_v2(version); }

/* --- which GPUs there are */

int nvmlDeviceGetCount_v2(unsigned *count) { CHECK(about_all()); *count = (unsigned)number("count", 0); return SUCCESS; }
int nvmlDeviceGetCount(unsigned *count) { return nvmlDeviceGetCount_v2(count); }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, gpu_t *gpu) {
    CHECK(about_all());
    if (index >= MOST || index >= (unsigned)number("count", 0))
        return INVALID_ARGUMENT;
    gpus[index].index = index;
    *gpu = &gpus[index];
    return about(*gpu);
}
int nvmlDeviceGetHandleByIndex(unsigned index, gpu_t *gpu) { return nvmlDeviceGetHandleByIndex_v2(index, gpu); }

static void place(gpu_t gpu, unsigned *domain, unsigned *bus, unsigned *device) {
    char value[32];
    *domain = 0, *bus = 0x53 + 0x11 * gpu->index, *device = 0;
    if (of(gpu, "pci", value, sizeof value))
        sscanf(value, "%x:%x:%x", domain, bus, device);
}
int nvmlDeviceGetHandleByPciBusId_v2(const char *address, gpu_t *gpu) {
    unsigned wanted[3], found[3];
    CHECK(about_all());
    if (sscanf(address, "%x:%x:%x", &wanted[0], &wanted[1], &wanted[2]) != 3)
        return INVALID_ARGUMENT;
    for (unsigned index = 0; index < MOST && index < (unsigned)number("count", 0); index++) {
        gpus[index].index = index;
        place(&gpus[index], &found[0], &found[1], &found[2]);
        if (!memcmp(wanted, found, sizeof found)) {
            *gpu = &gpus[index];
            return about(*gpu);
        }
    }
    return NOT_FOUND;
}
int nvmlDeviceGetIndex(gpu_t gpu, unsigned *index) { CHECK(about(gpu)); *index = gpu->index; return SUCCESS; }
int nvmlDeviceGetMinorNumber(gpu_t gpu, unsigned *minor) { CHECK(about(gpu)); *minor = gpu->index; return SUCCESS; }
int nvmlDeviceGetName(gpu_t gpu, char *name, unsigned size) {
    char value[96] = "GPU";
    CHECK(about(gpu));
    find("name", value, sizeof value);
    return text(name, size, value);
}
int nvmlDeviceGetUUID(gpu_t gpu, char *uuid, unsigned size) {
    char value[64];
    CHECK(about(gpu));
    snprintf(value, sizeof value, "GPU-00000000-0000-0000-0000-%012u", gpu->index);
    return text(uuid, size, value);
}
int nvmlDeviceGetSerial(gpu_t gpu, char *serial, unsigned size) {
    char value[32];
    CHECK(about(gpu));
    snprintf(value, sizeof value, "%013u", gpu->index);
    return text(serial, size, value);
}
typedef struct { char legacy[16]; unsigned domain, bus, device, id, subsystem; char address[32]; } pci_t;
int nvmlDeviceGetPciInfo_v3(gpu_t gpu, pci_t *pci) {
    CHECK(about(gpu));
    memset(pci, 0, sizeof *pci);
    place(gpu, &pci->domain, &pci->bus, &pci->device);
    pci->id = 0x233010de;
    snprintf(pci->address, sizeof pci->address, "%08X:%02X:%02X.0", pci->domain, pci->bus & 0xff, pci->device & 0xff);
    snprintf(pci->legacy, sizeof pci->legacy, "%04X:%02X:%02X.0", pci->domain & 0xffff, pci->bus & 0xff, pci->device & 0xff);
    return SUCCESS;
}
int nvmlDeviceGetPciInfo_v2(gpu_t gpu, pci_t *pci) { return nvmlDeviceGetPciInfo_v3(gpu, pci); }

/* --- memory errors */

int nvmlDeviceGetEccMode(gpu_t gpu, int *now, int *pending) { CHECK(about(gpu)); *now = *pending = 1; return SUCCESS; }
int nvmlDeviceGetTotalEccErrors(gpu_t gpu, int type, int counter, u64 *count) {
    char value[96];
    u64 corrected = 0, uncorrected = 0;
    double rate, since;
    struct timespec now;
    (void)counter;
    CHECK(about(gpu));
    if (of(gpu, "ecc", value, sizeof value))
        sscanf(value, "%llu,%llu", &corrected, &uncorrected);
    if (of(gpu, "ecc_rate", value, sizeof value) && sscanf(value, "%lf,%lf", &rate, &since) == 2) {
        clock_gettime(CLOCK_BOOTTIME, &now);
        corrected += (u64)(rate * ((double)now.tv_sec + 1e-9 * (double)now.tv_nsec - since));
    }
    *count = type ? uncorrected : corrected;
    return SUCCESS;
}
int nvmlDeviceGetMemoryErrorCounter(gpu_t gpu, int type, int counter, int where, u64 *count) {
    CHECK(about(gpu));
    if (where != 2) { /* device memory */
        *count = 0;
        return SUCCESS;
    }
    return nvmlDeviceGetTotalEccErrors(gpu, type, counter, count);
}
int nvmlDeviceGetRemappedRows(gpu_t gpu, unsigned *corrected, unsigned *uncorrected, unsigned *pending, unsigned *failed) {
    char value[64];
    CHECK(about(gpu));
    *corrected = *uncorrected = *pending = *failed = 0;
    if (of(gpu, "remap", value, sizeof value))
        sscanf(value, "%u,%u,%u,%u", corrected, uncorrected, pending, failed);
    return SUCCESS;
}

/* --- how it is */

typedef struct { unsigned field, scope; long long time, latency; unsigned type, result; union { double d; unsigned u; u64 l; } value; } field_t;
int nvmlDeviceGetFieldValues(gpu_t gpu, int count, field_t *fields) {
    struct timespec now;
    CHECK(about(gpu));
    clock_gettime(CLOCK_REALTIME, &now);
    for (int i = 0; i < count; i++) {
        unsigned rows[4] = {0, 0, 0, 0};
        fields[i].time = now.tv_sec * 1000000LL + now.tv_nsec / 1000;
        fields[i].latency = 0;
        fields[i].type = 1;
        fields[i].value.l = 0;
        fields[i].result = SUCCESS;
        if (fields[i].field == 230) /* recovery action */
            fields[i].value.u = (unsigned)one(gpu, "recovery", 0);
        else if (fields[i].field >= 142 && fields[i].field <= 145) { /* remapped rows */
            nvmlDeviceGetRemappedRows(gpu, &rows[0], &rows[1], &rows[2], &rows[3]);
            fields[i].value.u = rows[fields[i].field - 142];
        } else
            fields[i].result = NOT_SUPPORTED;
    }
    return SUCCESS;
}
int nvmlDeviceGetTemperature(gpu_t gpu, int sensor, unsigned *degrees) {
    (void)sensor;
    CHECK(about(gpu));
    *degrees = (unsigned)one(gpu, "temp", 34);
    return SUCCESS;
}
int nvmlDeviceGetPowerUsage(gpu_t gpu, unsigned *milliwatts) {
    CHECK(about(gpu));
    *milliwatts = (unsigned)one(gpu, "power", 70000);
    return SUCCESS;
}
int nvmlDeviceGetUtilizationRates(gpu_t gpu, unsigned percent[2]) {
    char value[32];
    CHECK(about(gpu));
    percent[0] = percent[1] = 0;
    if (of(gpu, "util", value, sizeof value))
        sscanf(value, "%u,%u", &percent[0], &percent[1]);
    return SUCCESS;
}
int nvmlDeviceGetCurrentClocksEventReasons(gpu_t gpu, u64 *reasons) {
    CHECK(about(gpu));
    *reasons = (u64)one(gpu, "clocks", 1);
    return SUCCESS;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(gpu_t gpu, u64 *reasons) { return nvmlDeviceGetCurrentClocksEventReasons(gpu, reasons); }
typedef struct { u64 total, free, used; } memory_t;
int nvmlDeviceGetMemoryInfo(gpu_t gpu, memory_t *memory) {
    CHECK(about(gpu));
    memory->total = (u64)number("memory_mib", 81559) << 20;
    memory->used = (u64)one(gpu, "used_mib", 0) << 20;
    memory->free = memory->total - memory->used;
    return SUCCESS;
}

/* --- links and fabric */

int nvmlDeviceGetNvLinkState(gpu_t gpu, unsigned link, int *active) {
    char key[32];
    CHECK(about(gpu));
    if (link >= (unsigned)number("links", 0))
        return number("links", 0) ? INVALID_ARGUMENT : NOT_SUPPORTED;
    snprintf(key, sizeof key, "link%u", link);
    *active = (int)one(gpu, key, 1);
    return SUCCESS;
}
typedef struct { unsigned char cluster[16]; unsigned status, clique; unsigned char state; } fabric_t;
int nvmlDeviceGetGpuFabricInfo(gpu_t gpu, fabric_t *fabric) {
    char value[32];
    unsigned state = 3, status = 0;
    CHECK(about(gpu));
    if (!number("links", 0))
        return NOT_SUPPORTED;
    memset(fabric, 0, sizeof *fabric);
    if (of(gpu, "fabric", value, sizeof value))
        sscanf(value, "%u,%u", &state, &status);
    fabric->state = (unsigned char)state;
    fabric->status = status;
    return SUCCESS;
}

/* --- events: an Xid for each client, once */

typedef struct { gpu_t gpu; u64 type, data; unsigned instance, compute; } event_t;
struct set { unsigned watched, told; };
int nvmlDeviceGetSupportedEventTypes(gpu_t gpu, u64 *types) { CHECK(about(gpu)); *types = 0x8; return SUCCESS; }
int nvmlEventSetCreate(struct set **set) {
    CHECK(about_all());
    *set = calloc(1, sizeof **set);
    return *set ? SUCCESS : UNKNOWN;
}
int nvmlDeviceRegisterEvents(gpu_t gpu, u64 types, struct set *set) {
    (void)types;
    CHECK(about(gpu));
    set->watched |= 1u << gpu->index;
    return SUCCESS;
}
int nvmlEventSetFree(struct set *set) { free(set); return SUCCESS; }
int nvmlEventSetWait_v2(struct set *set, event_t *event, unsigned timeout_ms) {
    for (unsigned waited_ms = 0;; waited_ms += 10) {
        CHECK(about_all());
        for (unsigned index = 0; index < MOST; index++) {
            unsigned bit = 1u << index;
            gpus[index].index = index;
            long xid = set->watched & bit ? one(&gpus[index], "xid", 0) : 0;
            if (!xid)
                set->told &= ~bit;
            else if (!(set->told & bit)) {
                set->told |= bit;
                memset(event, 0, sizeof *event);
                event->gpu = &gpus[index];
                event->type = 0x8;
                event->data = (u64)xid;
                return SUCCESS;
            }
        }
        if (waited_ms >= timeout_ms)
            return TIMEOUT;
        usleep(10000);
    }
}
