// Devices that no hardware is behind, in one piece: a page that opens neither has fewer files to load.

export * as js from "./js.ts";
export * as nothing from "./null.ts";
