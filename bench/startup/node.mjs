// Bare node: what every program below pays before its first line.
console.log(11);
