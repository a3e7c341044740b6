// The messages that we send to Metal's objects, with the types of what they take and answer, and the
// constants that go with them. objc.ts calls the Objective-C runtime by this table, and a test's runtime
// answers by it.

/** An object; 0n is nil. */
export type Id = bigint;
/** MTLSize: threads or threadgroups along three dimensions. */
export interface Size3 {
  readonly width: number;
  readonly height: number;
  readonly depth: number;
}
/** NSRange */
export interface CommandRange {
  readonly location: number;
  readonly length: number;
}
/** What a call reads or fills in while it runs. */
export type MessageArray = BigUint64Array | Int32Array;

/** Kinds of parameters and answers: how C passes them, and what stands for them here. */
export const C_TYPES = {
  object: "uint64_t",
  /** of memory that the host reaches */
  address: "uint64_t",
  /** NSUInteger, or an enumeration */
  uint: "uint64_t",
  bool: "bool",
  double: "double",
  text: "const char*",
  array: "void*",
  size: "GradloomSize3",
  range: "GradloomRange",
  none: "void",
} as const;
export interface MessageValues {
  object: Id;
  address: bigint;
  uint: number;
  bool: boolean;
  double: number;
  text: string;
  array: MessageArray;
  size: Size3;
  range: CommandRange;
  none: undefined;
}
export type MessageKind = keyof typeof C_TYPES;

/** By selector: the answer, and then what it takes. */
export const MESSAGES = {
  // any object, and Foundation's
  new: ["object"],
  retain: ["object"],
  release: ["none"],
  "stringWithUTF8String:": ["object", "text"],
  UTF8String: ["text"],
  localizedDescription: ["object"],
  code: ["uint"],
  count: ["uint"],
  "objectAtIndex:": ["object", "uint"],
  processInfo: ["object"],
  systemUptime: ["double"],
  // MTLDevice
  name: ["object"],
  "supportsFamily:": ["bool", "uint"],
  maxThreadsPerThreadgroup: ["size"],
  maxThreadgroupMemoryLength: ["uint"],
  maxBufferLength: ["uint"],
  recommendedMaxWorkingSetSize: ["uint"],
  "newCommandQueueWithMaxCommandBufferCount:": ["object", "uint"],
  newSharedEvent: ["object"],
  "newBufferWithLength:options:": ["object", "uint", "uint"],
  "newLibraryWithSource:options:error:": ["object", "object", "object", "array"],
  "newComputePipelineStateWithDescriptor:options:reflection:error:": [
    ...(["object", "object", "uint", "object", "array"] as const),
  ],
  "newIndirectCommandBufferWithDescriptor:maxCommandCount:options:": ["object", "object", "uint", "uint"],
  // MTLBuffer
  contents: ["address"],
  // MTLCompileOptions, MTLLibrary, MTLComputePipelineDescriptor, MTLComputePipelineState
  "setFastMathEnabled:": ["none", "bool"],
  "setLanguageVersion:": ["none", "uint"],
  "newFunctionWithName:": ["object", "object"],
  "setComputeFunction:": ["none", "object"],
  "setSupportIndirectCommandBuffers:": ["none", "bool"],
  maxTotalThreadsPerThreadgroup: ["uint"],
  // MTLCommandQueue, MTLCommandBuffer
  commandBuffer: ["object"],
  "setLabel:": ["none", "object"],
  computeCommandEncoder: ["object"],
  blitCommandEncoder: ["object"],
  "encodeSignalEvent:value:": ["none", "object", "uint"],
  "encodeWaitForEvent:value:": ["none", "object", "uint"],
  commit: ["none"],
  waitUntilCompleted: ["none"],
  status: ["uint"],
  error: ["object"],
  GPUStartTime: ["double"],
  GPUEndTime: ["double"],
  // encoders
  "setComputePipelineState:": ["none", "object"],
  "setBuffer:offset:atIndex:": ["none", "object", "uint", "uint"],
  "setBytes:length:atIndex:": ["none", "array", "uint", "uint"],
  "dispatchThreadgroups:threadsPerThreadgroup:": ["none", "size", "size"],
  "useResources:count:usage:": ["none", "array", "uint", "uint"],
  "executeCommandsInBuffer:withRange:": ["none", "object", "range"],
  "copyFromBuffer:sourceOffset:toBuffer:destinationOffset:size:": [
    ...(["none", "object", "uint", "object", "uint", "uint"] as const),
  ],
  endEncoding: ["none"],
  // MTLIndirectCommandBufferDescriptor, MTLIndirectCommandBuffer, MTLIndirectComputeCommand
  "setCommandTypes:": ["none", "uint"],
  "setInheritBuffers:": ["none", "bool"],
  "setInheritPipelineState:": ["none", "bool"],
  "setMaxKernelBufferBindCount:": ["none", "uint"],
  "indirectComputeCommandAtIndex:": ["object", "uint"],
  "setKernelBuffer:offset:atIndex:": ["none", "object", "uint", "uint"],
  "concurrentDispatchThreadgroups:threadsPerThreadgroup:": ["none", "size", "size"],
  setBarrier: ["none"],
} as const satisfies Record<string, readonly [MessageKind, ...MessageKind[]]>;

export type Selector = keyof typeof MESSAGES;
type Taken<T extends readonly unknown[]> = T extends readonly [unknown, ...infer R] ? R : never;
type MessageTuple<T extends readonly unknown[]> = {
  -readonly [I in keyof T]: T[I] extends MessageKind ? MessageValues[T[I]] : never;
};
export type MessageArguments<S extends Selector> = MessageTuple<Taken<(typeof MESSAGES)[S]>>;
export type MessageAnswer<S extends Selector> = MessageValues[(typeof MESSAGES)[S][0]];

/** Values of Metal's enumerations that mean something to us. */
export const MTL = {
  /** MTLLanguageVersion3_0: macOS 13 and later */
  LANGUAGE_3_0: (3 << 16) + 0,
  FAMILY_APPLE7: 1007,
  FAMILY_APPLE9: 1009,
  FAMILY_MAC2: 2002,
  STORAGE_SHARED: 0,
  STATUS_COMPLETED: 4,
  STATUS_ERROR: 5,
  ERROR_OUT_OF_MEMORY: 8,
  COMMAND_CONCURRENT_DISPATCH: 32,
  USAGE_READ_WRITE: 3,
} as const;
