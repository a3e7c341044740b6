// What the host offers besides devices: files and installed packages. Node has both; in a page a path is an
// address. Everything outside of devices/ takes these from here.

export { fileSize, hasFiles, packageFile, readBytes, writeBytes } from "#devices";
