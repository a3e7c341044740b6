// Reading by index. Writing is loaded on demand (ondemand.ts).

export * from "./getitem.ts";
