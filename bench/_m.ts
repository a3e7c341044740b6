import { Device, nn, Tensor, TinyJit } from "../src/index.ts";
import { planMemory, mostAlive } from "../src/schedule/memory.ts";
const model = new nn.Sequential(new nn.Conv2d(1, 32, 5),(x) => x.relu(),new nn.Conv2d(32, 32, 5),(x) => x.relu(),new nn.BatchNorm2d(32),(x) => x.maxPool2d(2),new nn.Conv2d(32, 64, 3),(x) => x.relu(),new nn.Conv2d(64, 64, 3),(x) => x.relu(),new nn.BatchNorm2d(64),(x) => x.maxPool2d(2),(x) => x.flatten(1),new nn.Linear(576, 10));
const opt = new nn.optim.Adam(nn.getParameters(model));
const B = 16;
const step = new TinyJit(async (x: Tensor, y: Tensor) => { const loss = Tensor.train(() => model.forward(x)).crossEntropy(y); opt.zeroGrad(); loss.backward(); await opt.step(loss); return loss; });
for (let i=0;i<2;i++) await step(Tensor.rand(B,1,28,28), Tensor.randint(0,10,[B]));
const items = step.jitCache; const slots = (globalThis as any).__slots;
const lives = new Map<number, {nbytes:number, first:number,last:number, name: string}>();
items.forEach((it,i)=> it.args.forEach((s,k)=>{ const b = slots[s].kind==='fixed'&&slots[s].buffer.base? slots[s].buffer: undefined; if(!b) return; const l = lives.get(s) ?? {nbytes:b.nbytes, first:i,last:i, name: it.runner.name}; l.last=i; lives.set(s,l);}));
const ls=[...lives.values()].sort((a,b)=>b.nbytes-a.nbytes);
for (const l of ls.slice(0,40)) console.log((l.nbytes/1e3).toFixed(0).padStart(8), l.first, l.last, l.name);
console.log(items.length, planMemory(ls), mostAlive(ls), step.memory);
// alive curve
for (let i=0;i<items.length;i++) console.log(i, items[i]!.runner.name, (ls.filter(l=>l.first<=i&&l.last>=i).reduce((a,l)=>a+l.nbytes,0)/1e3).toFixed(0));
