// The peers are installed by those who measure (npm install --prefix bench): the
// type check must not need them.

declare module "@jax-js/jax";
