// @ts-check
// A range of a profile as a Chrome trace, which Perfetto and mindprof read. Nothing here accesses
// the page.
import { eventsIn } from "./sums.js";

const TRACE_CATEGORIES = ["cpu_op", "user_annotation", "python_function", "cuda_runtime", "kernel", "gpu_user_annotation", "other"];

/**
 * Returns the events that begin in a range as the text of a trace file. Times are microseconds.
 * @param {import("./profile.js").Profile} profile
 * @param {[number, number]} range
 * @returns {string}
 */
export function traceText(profile, range) {
  /** @type {any[]} */
  const events = [];
  profile.tracks.forEach((track, number) => {
    const pid = track.is_stream ? 1 : 0;
    events.push({ ph: "M", name: "thread_name", pid, tid: number, args: { name: track.name } });
    const [first, end] = eventsIn(profile, track, range);
    for (let index = first; index < end; index += 1) {
      /** @type {Record<string, string>} */
      const args = {};
      if (profile.shapesOf(index)) args["Input Dims"] = profile.shapesOf(index);
      events.push({
        ph: "X", cat: TRACE_CATEGORIES[profile.category[index]], name: profile.nameOf(index), pid, tid: number,
        ts: profile.start[index] / 1000, dur: profile.duration[index] / 1000, args,
      });
    }
  });
  return JSON.stringify({ schemaVersion: 1, traceEvents: events });
}
