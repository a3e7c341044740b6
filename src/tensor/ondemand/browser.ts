// A page loads the areas that it imports itself.

export function prepareAreas(): void {}
