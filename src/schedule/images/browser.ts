// Images, in a page: there are none (src/images.ts).

export function settleImages(): void {}
