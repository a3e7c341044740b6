// Devices without hardware, in one piece: a page that opens neither of them loads fewer files.

export * as js from "./js.ts";
export * as nothing from "./null.ts";
