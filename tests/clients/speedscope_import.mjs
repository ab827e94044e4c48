// Imports a file as speedscope does: node speedscope_import.mjs FOLDER FILE prints its profiles as JSON.
//
// FOLDER holds speedscope's page. Its importer is a part of the page's script, which starts the whole
// page: here it finds as much of a browser as it needs to get to where the importer is ready. The table
// of the importer's names is how it is reached.

import { readFileSync, readdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import vm from 'node:vm';

const TABLE = ',{importFromFileSystemDirectoryEntry:';

async function importer(folder) {
  const name = readdirSync(folder).find((file) => /^speedscope-.*\.js$/.test(file));
  const script = readFileSync(join(folder, name), 'utf8');
  if (script.split(TABLE).length !== 2) throw new Error(`${name} has no table of importers`);
  const element = () => ({ style: {}, setAttribute() {}, appendChild() {}, childNodes: [] });
  const page = {
    console: { log() {}, warn() {}, error() {} }, TextDecoder, TextEncoder, URL, setTimeout, clearTimeout,
    navigator: { userAgent: '' }, location: { protocol: 'http:', hash: '', search: '' }, localStorage: {},
    document: {
      createElement: element, createTextNode: element, head: element(), body: element(),
      getElementById: () => null, addEventListener() {}, fonts: {},
    },
    addEventListener() {},
  };
  page.window = page.self = page;
  vm.createContext(page);
  try {
    vm.runInContext(script.replace(TABLE, TABLE.replace('{', 'globalThis.importers={')), page);
  } catch (error) {
    // By then all is loaded: what is left is to draw the page, and there is nothing to draw on.
    if (error.message !== 'matchMedia is not defined') throw error;
  }
  await new Promise((done) => setTimeout(done, 0)); // the page loads its importer in a later turn
  const bytes = vm.runInContext('(list) => Uint8Array.from(list).buffer', page);
  const read = page.importers.importProfilesFromArrayBuffer();
  return (file) => read(basename(file), bytes(readFileSync(file)));
}

const [folder, file] = process.argv.slice(2);
const group = await (await importer(folder))(file);
const profiles = group.profiles.map((profile) => {
  const frames = [];
  profile.forEachFrame((frame) => frames.push({
    name: frame.name, self: frame.getSelfWeight(), total: frame.getTotalWeight(),
  }));
  return {
    name: profile.getName(), unit: profile.getWeightUnit(), total: profile.getTotalWeight(), frames,
  };
});
console.log(JSON.stringify({ shown: group.indexToView, profiles }));
