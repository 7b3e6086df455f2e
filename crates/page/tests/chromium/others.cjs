// What others say of a HAR and of a trace: others.cjs MODULES HAR TRACE ORIGIN
const [modules, har, trace, origin] = process.argv.slice(2);
const fs = require("fs");
const load = (name) => require(`${modules}/node_modules/${name}`);

(async () => {
    await load("har-validator").har(JSON.parse(fs.readFileSync(har, "utf8")));
    const told = await load("speedline-core")(trace, { timeOrigin: Number(origin), include: "speedIndex" });
    console.log(JSON.stringify({ speedIndex: told.speedIndex, frames: told.frames.length - 1 }));
})().catch((problem) => {
    console.error(problem.errors ?? problem);
    process.exit(1);
});
