// Writes src/devices/nv/driver/ioctls.ts and errornames.ts: the numbers, structures and names by which we
// speak to NVIDIA's kernel driver. They come from its open headers: `node scripts/nvstructs.mjs FOLDER`; the
// FOLDER is a checkout of open-gpu-kernel-modules at the tag of the driver. A C compiler lays the structures
// out, so nothing is guessed. For another driver version: run it again with that tag, look at the difference,
// and try it on a GPU.

import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const INCLUDE = [
  "src/common/sdk/nvidia/inc",
  "src/nvidia/arch/nvalloc/unix/include",
  "kernel-open/nvidia-uvm",
  "kernel-open/common/inc",
];
const HEADERS = [
  "nvtypes.h nvos.h nvgputypes.h nvstatus.h nv_escape.h nv-ioctl-numbers.h nv-ioctl.h uvm_linux_ioctl.h",
  "nv-unix-nvos-params-wrappers.h alloc/alloc_channel.h class/cl0000.h class/cl0002.h class/cl003e.h class/cl0040.h",
  "class/cl0041.h class/cl0071.h class/cl0080.h class/cl2080.h class/cl83de.h class/cl9067.h",
  "class/cl90f1.h class/cla06c.h class/clb0b5sw.h class/clc361.h class/clc561.h class/clc661.h class/clc56f.h",
  "class/clc86f.h class/clc6c0.h class/clc7c0.h class/clc9c0.h class/clcbc0.h class/clc6b5.h class/clc7b5.h",
  "class/clc8b5.h class/cl2080_notification.h class/cla06f.h ctrl/ctrl0000/ctrl0000gpu.h ctrl/ctrl0080/ctrl0080gpu.h",
  "ctrl/ctrl0080/ctrl0080gr.h ctrl/ctrl2080/ctrl2080ce.h ctrl/ctrl2080/ctrl2080fb.h ctrl/ctrl2080/ctrl2080gpu.h ctrl/ctrl83de/ctrl83dedebug.h",
  "ctrl/ctrla06c.h ctrl/ctrlc36f.h",
].flatMap((line) => line.split(" "));

// Structure -> the fields that we write or read, `a.b` for one inside another.
const STRUCTS = {
  // the ioctls of the nvidia files
  nv_ioctl_rm_api_version_t: "cmd versionString",
  nv_ioctl_card_info_t: "valid gpu_id minor_number",
  nv_ioctl_register_fd_t: "ctl_fd",
  NVOS00_PARAMETERS: "hRoot hObjectParent hObjectOld status",
  NVOS21_PARAMETERS: "hRoot hObjectParent hObjectNew hClass pAllocParms paramsSize status",
  NVOS54_PARAMETERS: "hClient hObject cmd params paramsSize status",
  nv_ioctl_nvos02_parameters_with_fd:
    "params.hRoot params.hObjectParent params.hObjectNew params.hClass params.flags params.pMemory params.limit params.status fd",
  nv_ioctl_nvos33_parameters_with_fd:
    "params.hClient params.hDevice params.hMemory params.length params.pLinearAddress params.status params.flags fd",
  NVOS34_PARAMETERS: "hClient hDevice hMemory pLinearAddress status",
  // what RM_ALLOC takes, by class
  NV0080_ALLOC_PARAMETERS: "deviceId hClientShare vaMode",
  NV2080_ALLOC_PARAMETERS: "subDeviceId",
  NV_VASPACE_ALLOCATION_PARAMETERS: "flags vaSize vaBase",
  NV_CHANNEL_GROUP_ALLOCATION_PARAMETERS: "hVASpace engineType",
  NV_CTXSHARE_ALLOCATION_PARAMETERS: "hVASpace flags",
  NV_CHANNEL_ALLOC_PARAMS:
    "hObjectError hObjectBuffer gpFifoOffset gpFifoEntries flags hContextShare hUserdMemory userdOffset",
  NVB0B5_ALLOCATION_PARAMETERS: "version engineType",
  NV_MEMORY_ALLOCATION_PARAMS: "owner type flags attr attr2 size alignment limit",
  NV83DE_ALLOC_PARAMETERS: "hAppClient hClass3dObject",
  // what RM_CONTROL takes, by command
  NV0000_CTRL_GPU_GET_ID_INFO_V2_PARAMS: "gpuId deviceInstance",
  NV0080_CTRL_GPU_GET_CLASSLIST_V2_PARAMS: "numClasses classList",
  NV0080_CTRL_GR_GET_INFO_V2_PARAMS: "grInfoListSize grInfoList",
  NV0080_CTRL_GR_INFO: "index data",
  NV2080_CTRL_FB_GET_INFO_V2_PARAMS: "fbInfoListSize fbInfoList",
  NV2080_CTRL_FB_INFO: "index data",
  NV2080_CTRL_GPU_GET_GID_INFO_PARAMS: "flags length data",
  NV2080_CTRL_GPU_GET_NAME_STRING_PARAMS: "gpuNameString.ascii",
  NV2080_CTRL_CE_GET_ALL_CAPS_PARAMS: "capsTbl present",
  NV2080_CTRL_CE_GET_CE_PCE_MASK_PARAMS: "ceEngineType pceMask",
  NVA06C_CTRL_GPFIFO_SCHEDULE_PARAMS: "bEnable",
  NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN_PARAMS: "workSubmitToken",
  NV83DE_CTRL_DEBUG_READ_MMU_FAULT_INFO_PARAMS: "mmuFaultInfoList count",
  NV83DE_CTRL_DEBUG_READ_MMU_FAULT_INFO_ENTRY: "faultAddress faultType accessType",
  // the ioctls of the uvm file
  UVM_INITIALIZE_PARAMS: "flags rmStatus",
  UVM_MM_INITIALIZE_PARAMS: "uvmFd rmStatus",
  UVM_REGISTER_GPU_PARAMS: "gpu_uuid rmCtrlFd rmStatus",
  UVM_UNREGISTER_GPU_PARAMS: "gpu_uuid rmStatus",
  UVM_REGISTER_GPU_VASPACE_PARAMS: "gpuUuid rmCtrlFd hClient hVaSpace rmStatus",
  UVM_UNREGISTER_GPU_VASPACE_PARAMS: "gpuUuid rmStatus",
  UVM_REGISTER_CHANNEL_PARAMS: "gpuUuid rmCtrlFd hClient hChannel base length rmStatus",
  UVM_UNREGISTER_CHANNEL_PARAMS: "gpuUuid hClient hChannel rmStatus",
  UVM_CREATE_EXTERNAL_RANGE_PARAMS: "base length rmStatus",
  UVM_MAP_EXTERNAL_ALLOCATION_PARAMS:
    "base length perGpuAttributes gpuAttributesCount rmCtrlFd hClient hMemory rmStatus",
  UvmGpuMappingAttributes: "gpuUuid gpuMappingType",
  UVM_FREE_PARAMS: "base length rmStatus",
  // what lies in memory
  NvNotification: "info32 status",
  NvA06FControl: "GPGet GPPut",
};

const NUMBERS = [
  "NV_ESC_CHECK_VERSION_STR NV_ESC_CARD_INFO NV_ESC_REGISTER_FD NV_ESC_RM_ALLOC NV_ESC_RM_CONTROL NV_ESC_RM_FREE",
  "NV_ESC_RM_ALLOC_MEMORY NV_ESC_RM_MAP_MEMORY NV_ESC_RM_UNMAP_MEMORY",
  "NV_RM_API_VERSION_CMD_QUERY",
  "UVM_INITIALIZE UVM_MM_INITIALIZE UVM_REGISTER_GPU UVM_UNREGISTER_GPU UVM_REGISTER_GPU_VASPACE UVM_UNREGISTER_GPU_VASPACE",
  "UVM_REGISTER_CHANNEL UVM_UNREGISTER_CHANNEL UVM_CREATE_EXTERNAL_RANGE UVM_MAP_EXTERNAL_ALLOCATION UVM_FREE",
  "UVM_INIT_FLAGS_DISABLE_HMM",
  "NV01_ROOT_CLIENT NV01_DEVICE_0 NV20_SUBDEVICE_0 NV01_MEMORY_SYSTEM NV01_MEMORY_LOCAL_USER",
  "NV01_MEMORY_SYSTEM_OS_DESCRIPTOR FERMI_VASPACE_A FERMI_CONTEXT_SHARE_A KEPLER_CHANNEL_GROUP_A GT200_DEBUGGER",
  "AMPERE_USERMODE_A HOPPER_USERMODE_A AMPERE_CHANNEL_GPFIFO_A HOPPER_CHANNEL_GPFIFO_A",
  "AMPERE_COMPUTE_A AMPERE_COMPUTE_B ADA_COMPUTE_A HOPPER_COMPUTE_A",
  "AMPERE_DMA_COPY_A AMPERE_DMA_COPY_B HOPPER_DMA_COPY_A",
  "NV0000_CTRL_CMD_GPU_GET_ID_INFO_V2 NV0080_CTRL_CMD_GPU_GET_CLASSLIST_V2 NV0080_CTRL_CMD_GR_GET_INFO_V2",
  "NV2080_CTRL_CMD_FB_GET_INFO_V2 NV2080_CTRL_CMD_GPU_GET_GID_INFO NV2080_CTRL_CMD_GPU_GET_NAME_STRING",
  "NV2080_CTRL_CMD_CE_GET_ALL_CAPS NV2080_CTRL_CMD_CE_GET_CE_PCE_MASK NV2080_CTRL_MAX_CES",
  "NVB0B5_ALLOCATION_PARAMETERS_VERSION_1",
  "NVA06C_CTRL_CMD_GPFIFO_SCHEDULE NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN",
  "NV83DE_CTRL_CMD_DEBUG_READ_MMU_FAULT_INFO",
  "NV0080_CTRL_GR_INFO_INDEX_SHADER_PIPE_SUB_COUNT NV0080_CTRL_GR_INFO_INDEX_SM_VERSION",
  "NV0080_CTRL_GR_INFO_INDEX_MAX_WARPS_PER_SM NV0080_CTRL_GR_INFO_INDEX_LITTER_NUM_GPCS",
  "NV0080_CTRL_GR_INFO_INDEX_LITTER_NUM_TPC_PER_GPC NV0080_CTRL_GR_INFO_INDEX_LITTER_NUM_SM_PER_TPC",
  "NV2080_CTRL_FB_INFO_INDEX_HEAP_SIZE NV2080_CTRL_FB_INFO_INDEX_HEAP_FREE",
  "NV_DEVICE_ALLOCATION_VAMODE_OPTIONAL_MULTIPLE_VASPACES",
  "NV_VASPACE_ALLOCATION_FLAGS_IS_EXTERNALLY_OWNED NV_VASPACE_ALLOCATION_FLAGS_ENABLE_PAGE_FAULTING",
  "NV_CTXSHARE_ALLOCATION_FLAGS_SUBCONTEXT_ASYNC NV2080_ENGINE_TYPE_GRAPHICS",
  "NV2080_ENGINE_TYPE_COPY0 NV2080_ENGINE_TYPE_COPY9",
  "NVOS32_TYPE_IMAGE NVOS32_TYPE_NOTIFIER NVOS32_ALLOC_FLAGS_IGNORE_BANK_PLACEMENT NVOS32_ALLOC_FLAGS_ALIGNMENT_FORCE",
  "NVOS32_ALLOC_FLAGS_MAP_NOT_REQUIRED NVOS32_ALLOC_FLAGS_PERSISTENT_VIDMEM",
  "NV2080_GPU_CMD_GPU_GET_GID_FLAGS_FORMAT_BINARY",
  "NVC361_TIME_0 NVC361_TIME_1 NVC361_NOTIFY_CHANNEL_PENDING NVC361_NV_USERMODE__SIZE",
].flatMap((line) => line.split(" "));

// Values of bit fields, already in their place: FIELD_VALUE means VALUE << lowest bit of FIELD.
const PLACED = [
  "NVOS02_FLAGS_PHYSICALITY NONCONTIGUOUS",
  "NVOS02_FLAGS_COHERENCY CACHED",
  "NVOS02_FLAGS_MAPPING NO_MAP",
  "NVOS32_ATTR_PHYSICALITY ALLOW_NONCONTIGUOUS",
  "NVOS32_ATTR_PHYSICALITY CONTIGUOUS",
  "NVOS32_ATTR_PAGE_SIZE HUGE",
  "NVOS32_ATTR_LOCATION PCI",
  "NVOS32_ATTR_COHERENCY CACHED",
  "NVOS32_ATTR2_GPU_CACHEABLE YES",
  "NVOS32_ATTR2_GPU_CACHEABLE NO",
  "NVOS32_ATTR2_PAGE_SIZE_HUGE 2MB",
  "NVOS32_ATTR2_ZBC PREFER_NO_ZBC",
  "NVOS33_FLAGS_CACHING_TYPE WRITECOMBINED",
  "NVOS33_FLAGS_CACHING_TYPE UNCACHED",
  "NVOS33_FLAGS_CACHING_TYPE CACHED",
];

// Bits of tables of capabilities, which stand there as BYTE:BIT: the bit.
const CAPABILITIES = ["NV2080_CTRL_CE_CAPS_CE_GRCE"];

/** A program that prints the tables as JSON. */
function program() {
  const lines = HEADERS.map((h) => `#include "${h}"`);
  lines.push("#include <stddef.h>", "#include <stdio.h>", "int main(void) {", 'printf("{\\"structs\\":{");');
  Object.entries(STRUCTS).forEach(([name, fields], i) => {
    lines.push(`printf("${i ? "," : ""}\\"${name}\\":{\\"bytes\\":%zu,\\"fields\\":{", sizeof(${name}));`);
    fields.split(" ").forEach((field, j) => {
      const leaf = field.startsWith("params.") ? field.slice(7) : field.split(".")[0];
      const at = `offsetof(${name}, ${field}), sizeof(((${name}*)0)->${field})`;
      lines.push(`printf("${j ? "," : ""}\\"${leaf}\\":[%zu,%zu]", ${at});`);
    });
    lines.push('printf("}}");');
  });
  lines.push('printf("},\\"numbers\\":{");');
  const numbers = NUMBERS.map((name) => [name, `(${name})`]);
  for (const entry of PLACED) {
    const [field, value] = entry.split(" ");
    // 31:30 is the middle of a conditional: with 0 in front it gives the lowest bit
    numbers.push([`${field}_${value}`, `((${field}_${value}) << (0 ? ${field}))`]);
  }
  for (const name of CAPABILITIES) numbers.push([name, `(0 ? ${name})`]);
  numbers.forEach(([name, value], i) => {
    lines.push(`printf("${i ? "," : ""}\\"${name}\\":%llu", (unsigned long long)(unsigned)${value});`);
  });
  lines.push('printf("}}\\n"); return 0; }');
  return lines.join("\n");
}

function run(command, args) {
  const answer = spawnSync(command, args, { encoding: "utf8" });
  if (answer.status === 0) return answer.stdout;
  throw new Error(`${command}: ${answer.error?.message ?? answer.stderr}`);
}

function layout(root) {
  const folder = mkdtempSync(join(tmpdir(), "nvstructs-"));
  try {
    const [source, binary] = [join(folder, "tables.c"), join(folder, "tables")];
    writeFileSync(source, program());
    run("cc", ["-w", ...INCLUDE.flatMap((path) => ["-I", join(root, path)]), source, "-o", binary]);
    return JSON.parse(run(binary, []));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/**
 * `#define PREFIX_NAME (number)` and `NV_STATUS_CODE(NAME, number, …)`: number -> name, the first of several.
 */
function names(root, header, pattern) {
  const found = {};
  for (const [, name, code] of readFileSync(join(root, INCLUDE[0], header), "utf8").matchAll(pattern)) {
    found[Number(code)] ??= name;
  }
  return found;
}

function main(root) {
  const version = /^NVIDIA_VERSION = (\S+)/m.exec(readFileSync(join(root, "version.mk"), "utf8"))?.[1];
  const { structs, numbers } = layout(root);
  const hex = (value) => (value < 10 ? `${value}` : `0x${value.toString(16)}`);
  const table = (entries, show) => entries.map(([k, v]) => `  ${k}: ${show(v)},`).join("\n");
  const status = names(root, "nvstatuscodes.h", /^NV_STATUS_CODE\((\w+),\s*(0x[0-9A-Fa-f]+)/gm);
  const errors = names(root, "nverror.h", /^#define ROBUST_CHANNEL_(?!LAST_ERROR)(\w+)\s+\((\d+)\)/gm);
  const generated = `// GENERATED by scripts/nvstructs.mjs from NVIDIA's open-gpu-kernel-modules ${version}: change that script, not
// this file.`;
  write(
    "ioctls.ts",
    `${generated} The numbers and structures by which driver/ and memory/ speak to the kernel driver.

/** The driver that the tables were made from; all of the same first number have the same structures. */
export const MADE_FOR = "${version}";

/** Bytes of each structure, and of each field we use where it starts and how long it is. */
export const STRUCTS = {
${table(Object.entries(structs), (v) => JSON.stringify(v))}
} as const;

/** Values of bit fields are in their place already. */
export const N = {
${table(Object.entries(numbers), hex)}
} as const;
`,
  );
  write(
    "errornames.ts",
    `${generated} What the kernel driver calls its errors.

/** What the driver answers. */
export const STATUS: Readonly<Record<number, string>> = {
${table(Object.entries(status), (v) => JSON.stringify(v))}
};

/** What an error notifier says went wrong on a channel. */
export const CHANNEL_ERRORS: Readonly<Record<number, string>> = {
${table(Object.entries(errors), (v) => JSON.stringify(v))}
};
`,
  );
  console.log(
    `${Object.keys(structs).length} structures, ${Object.keys(numbers).length} numbers, ${version}`,
  );
}

function write(name, text) {
  const target = join(import.meta.dirname, "..", "src", "devices", "nv", "driver", name);
  writeFileSync(target, text);
  run("npx", ["biome", "format", "--write", target]);
}

if (process.argv[2] === undefined) throw new Error("usage: node scripts/nvstructs.mjs CHECKOUT");
main(resolve(process.argv[2]));
