//! `mindprof ranks`, `mindprof summarize` and `mindprof merge`.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::program::{device_golden, run};

const RANKS: usize = 100;
const STEPS: u64 = 6;
const SLOW: usize = 41;

/// Returns the trace of one rank: steps that compute and then meet the other ranks. One is slow.
fn trace(rank: usize) -> String {
    let mut events = String::new();
    let mut now = 1_000_000.0;
    for step in 0..STEPS {
        let work = if rank == SLOW { 1_500.0 } else { 1_000.0 };
        let (begin, end) = (now, now + 1_600.0);
        let name = format!("ProfilerStep#{step}");
        push(&mut events, ("user_annotation", &name), 1, (begin, end), "");
        push(
            &mut events,
            ("kernel", "gemm"),
            7,
            (begin, begin + work),
            "",
        );
        let arguments = format!(
            "\"Collective name\": \"allreduce\", \"Process Group Name\": \"0\", \"Seq\": {step}, \
             \"Process Group Ranks\": \"[]\", \"Group size\": {RANKS}, \"Global rank start\": 0, \
             \"Global rank stride\": 1, \"dtype\": \"Float\", \"In msg nelems\": 1000"
        );
        let kernel = ("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL");
        push(&mut events, kernel, 20, (begin + work, end), &arguments);
        now = end;
    }
    format!(
        "{{\"distributedInfo\": {{\"rank\": {rank}, \"world_size\": {RANKS}}}, \
         \"traceEvents\": [{}]}}",
        events.trim_end_matches(',')
    )
}

fn push(
    events: &mut String,
    (category, name): (&str, &str),
    track: u32,
    (begin, end): (f64, f64),
    arguments: &str,
) {
    let process = if category == "kernel" { 0 } else { 100 };
    write!(
        events,
        "{{\"ph\": \"X\", \"cat\": \"{category}\", \"name\": \"{name}\", \"pid\": {process}, \
         \"tid\": {track}, \"ts\": {begin}, \"dur\": {}, \"args\": {{{arguments}}}}},",
        end - begin
    )
    .unwrap();
}

/// Writes the traces of all ranks, some of them not usable.
fn job() -> (TempDir, Vec<PathBuf>) {
    let folder = tempfile::tempdir().unwrap();
    let paths: Vec<PathBuf> = (0..RANKS)
        .map(|rank| {
            let path = folder.path().join(format!("trace{rank}.json"));
            let text = match rank {
                10 => "{\"traceEvents\": 7".into(),
                20 => String::new(),
                30 => "name,rank\na,1\n".into(),
                _ => trace(rank),
            };
            fs::write(&path, text).unwrap();
            path
        })
        .collect();
    fs::remove_file(&paths[50]).unwrap();
    (folder, paths)
}

fn arguments<'a>(first: &'a str, paths: &'a [PathBuf], last: &'a [&'a str]) -> Vec<&'a Path> {
    let paths = paths.iter().map(PathBuf::as_path);
    let last = last.iter().map(Path::new);
    [Path::new(first)]
        .into_iter()
        .chain(paths)
        .chain(last)
        .collect()
}

#[test]
fn unusable_files_are_named_and_the_rest_is_answered() {
    let (_folder, paths) = job();
    let done = run(arguments("ranks", &paths, &["--width", "80"]));
    assert_eq!(done.code, Some(1), "{}", done.stderr);
    for rank in [10, 20, 30, 50] {
        let name = format!("trace{rank}.json: ");
        assert!(done.stderr.contains(&name), "{}", done.stderr);
    }
    assert_eq!(
        done.stderr.matches("warning: ").count(),
        4,
        "{}",
        done.stderr
    );
    let text = &done.stdout;
    assert!(
        text.starts_with("96 ranks, 6 steps of 1.60 ms: rank 41 is slow, mostly"),
        "{text}"
    );
    assert!(
        text.contains("4 of 100 ranks are missing: 10-30:10,50\n"),
        "{text}"
    );
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
}

#[test]
fn summaries_merge_to_the_same_answer_in_any_order() {
    let (folder, paths) = job();
    let usable: Vec<PathBuf> = [3, 41, 7].map(|rank| paths[rank].clone()).to_vec();
    let at_once = run(arguments("ranks", &usable, &["--json"])).printed();
    let part = |name: &str| folder.path().join(name);
    let parts: Vec<PathBuf> = usable
        .iter()
        .enumerate()
        .map(|(index, path)| {
            let out = part(&format!("{index}.ranks"));
            let done = run([Path::new("summarize"), path, Path::new("--out"), &out]);
            assert_eq!(done.code, Some(0), "{}", done.stderr);
            out
        })
        .collect();
    let two = part("two.ranks");
    let [first, second, third] = [0, 1, 2].map(|index| parts[index].as_path());
    let merge = Path::new("merge");
    run([merge, third, first, Path::new("--out"), &two]).told();
    assert_eq!(
        run([merge, second, &two, Path::new("--json")]).printed(),
        at_once
    );
    assert_eq!(
        run(arguments("ranks", &parts, &["--json"])).printed(),
        at_once
    );
    let damaged = fs::read(&two).unwrap();
    fs::write(&two, &damaged[..damaged.len() / 2]).unwrap();
    let done = run([merge, second, &two, Path::new("--json")]);
    assert_eq!(done.code, Some(1));
    assert!(
        done.stderr.contains("two.ranks: damaged summary: "),
        "{}",
        done.stderr
    );
}

/// Runs the program with a file as its stdin.
fn run_on(stdin: &Path, arguments: &[&Path]) -> crate::program::Run {
    let mut command = crate::program::mindprof();
    command
        .args(arguments)
        .stdin(fs::File::open(stdin).unwrap());
    command.output().unwrap().into()
}

#[test]
fn stdin_and_compressed_summaries_have_the_same_answer() {
    let (folder, paths) = job();
    let (one, other) = (paths[3].as_path(), paths[41].as_path());
    let [ranks, summarize, merge, out, dash, json] =
        ["ranks", "summarize", "merge", "--out", "-", "--json"].map(Path::new);
    let at_once = run([ranks, one, other, json]).printed();
    // A trace from stdin has no name that a file could be told by.
    let named = |text: String| text.replace("\"stdin\"", "\"trace41.json\"");
    let read = run_on(other, &[ranks, one, dash, json]);
    assert_eq!(named(read.printed()), at_once);
    let (packed, piped) = (
        folder.path().join("3.ranks.gz"),
        folder.path().join("41.ranks"),
    );
    run([summarize, one, out, &packed]).told();
    assert_eq!(fs::read(&packed).unwrap()[..2], [0x1f, 0x8b]);
    run_on(other, &[summarize, dash, out, &piped]).told();
    let of_parts = [
        run([ranks, &packed, &piped, json]),
        run([merge, &packed, &piped, json]),
        run_on(&packed, &[merge, &piped, dash, json]),
        run_on(&packed, &[ranks, &piped, dash, json]),
    ];
    for run in of_parts {
        assert_eq!(named(run.printed()), at_once);
    }
    let trace = folder.path().join("all.json");
    let done = run_on(other, &[ranks, one, dash, Path::new("--trace"), &trace]);
    assert_eq!(done.code, Some(2));
    assert!(
        done.stderr.contains("which stdin does not allow"),
        "{}",
        done.stderr
    );
    let done = run_on(&paths[20], &[merge, dash]);
    assert_eq!(done.code, Some(2));
    assert!(
        done.stderr.contains("stdin: not a summary of ranks"),
        "{}",
        done.stderr
    );
}

#[test]
fn nothing_to_read_is_a_failure() {
    let folder = tempfile::tempdir().unwrap();
    let done = run([Path::new("ranks"), folder.path()]);
    assert_eq!(done.code, Some(2));
    assert!(
        done.stderr.contains("no trace in this folder"),
        "{}",
        done.stderr
    );
    let foreign = folder.path().join("notes.txt");
    fs::write(&foreign, "hello").unwrap();
    let done = run([Path::new("merge"), &foreign]);
    assert_eq!(done.code, Some(2));
    assert!(
        done.stderr.contains("not a summary of ranks"),
        "{}",
        done.stderr
    );
}

#[test]
fn one_real_trace_fits_eighty_columns() {
    let trace = device_golden("gpt-full");
    let text = run([
        Path::new("ranks"),
        &trace,
        Path::new("--width"),
        Path::new("80"),
    ])
    .printed();
    assert!(
        text.starts_with("1 rank: ranks cannot be compared"),
        "{text}"
    );
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
}

#[test]
fn the_page_and_the_trace_have_the_chosen_ranks() {
    let (folder, paths) = job();
    let (page, trace) = (
        folder.path().join("job.html"),
        folder.path().join("job.json"),
    );
    let options = [
        "--html",
        page.to_str().unwrap(),
        "--trace",
        trace.to_str().unwrap(),
        "--ranks",
        "3,41-42",
    ];
    let done = run(arguments("ranks", &paths, &options));
    assert_eq!(done.code, Some(1), "{}", done.stderr);
    assert!(done.stderr.contains("job.html ("), "{}", done.stderr);
    assert!(done.stderr.contains("3 ranks, "), "{}", done.stderr);
    let html = fs::read_to_string(&page).unwrap();
    assert!(html.contains("rank 41 is slow"), "{html}");
    // Of 96 ranks, two share a row.
    assert_eq!(
        html.matches("<rect class=\"heat-").count(),
        48 * STEPS as usize
    );
    let text = fs::read_to_string(&trace).unwrap();
    for rank in [3, 41, 42] {
        assert!(text.contains(&format!("\"rank {rank}: ")), "{rank}");
    }
    assert!(!text.contains("\"rank 4: "));
}

#[test]
fn options_that_do_not_fit_are_usage_errors() {
    let (folder, paths) = job();
    let out = folder.path().join("job.csv");
    let out = out.to_str().unwrap();
    for (options, message) in [
        (vec!["--ranks", "1"], "--ranks chooses what"),
        (vec!["--trace", out], "not the name of a trace"),
        (vec!["--trace", "a.json", "--ranks", "5-1"], "no rank"),
        (vec!["--on", "ray"], "cannot read files on ray"),
    ] {
        let done = run(arguments("ranks", &paths, &options));
        assert_eq!(done.code, Some(2), "{}", done.stderr);
        assert!(done.stderr.contains(message), "{}", done.stderr);
    }
    let missing = run(arguments(
        "ranks",
        &paths[..3],
        &["--parquet", out, "--ranks", "9"],
    ));
    assert_ne!(missing.code, Some(0));
    let message = "there is no trace of rank 9";
    assert!(missing.stderr.contains(message), "{}", missing.stderr);
}
