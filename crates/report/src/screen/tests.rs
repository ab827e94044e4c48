use mindprof_analyze::Analysis;
use mindprof_answers::{
    CodePlace, Confidence, Explanation, Finding, OwnCode, RULES, RUN_FACTS_KEY, RunMarks,
    RunReport, ScreenFacts, SideRanges, SourceFile, SourceFiles, SourceFunction, Work,
};
use mindprof_model::{
    Category, DeviceKind, Event, Part, Profile, Recorder, StackId, StepMark, StringTable, Thread,
};

use super::*;
use crate::advice::stake_text;

fn profile() -> Profile {
    profile_of(1, 0)
}

/// Two functions of the user's: `Net.forward` takes a quarter of each step, `metrics` the rest with
/// `items` operators. It calls some more `after` the last step.
fn profile_of(items: u64, after: u64) -> Profile {
    let mut part = Part::new();
    let thread = part.add_thread(Thread {
        process: 1,
        native: 1,
        name: StringTable::EMPTY,
        device: DeviceKind::Cpu,
    });
    let stack = |part: &mut Part, frames: &[&str]| {
        frames.iter().fold(StackId::NONE, |caller, frame| {
            let frame = part.strings.intern(frame);
            part.stacks.push(caller, frame)
        })
    };
    let forward = stack(&mut part, &["train.py(30): main", "train.py(5): forward"]);
    let metrics = stack(&mut part, &["train.py(31): main", "train.py(12): metrics"]);
    let mut marks = Vec::new();
    for number in 0..8 {
        let start = number * 4_000_000;
        let item = |at| ("aten::item", metrics, at, 3_000_000 / items);
        let in_step = (0..items).map(|index| item(start + 1_000_000 + index * 3_000_000 / items));
        let late = (0..after).map(|index| item(32_000_000 + index * 3_000_000 / items));
        let late = late.filter(|_| number == 7);
        let forward = ("aten::addmm", forward, start, 1_000_000);
        let all = std::iter::once(forward).chain(in_step).chain(late);
        for (name, stack, start, duration) in all {
            let name = part.strings.intern(name);
            let (start, duration) = (Nanos(start), Nanos(duration));
            let mut event = Event::new(Category::Operator, name, thread, start, duration);
            event.stack = stack;
            part.add_event(event);
        }
        marks.push(StepMark {
            number: number + 1,
            unix_ns: start + 4_000_000,
        });
    }
    StepMark::write(&marks, &mut part.metadata);
    part.into_profile().expect("everything was added")
}

fn screen(facts: ScreenFacts) -> Screen {
    screen_of(profile(), facts)
}

fn screen_of(profile: Profile, facts: ScreenFacts) -> Screen {
    let analysis = Analysis::build(profile);
    let work = Work::without(SideRanges::default());
    let rows = work.averages(&analysis, work.grouping(analysis.profile()));
    let report = RunReport::build(&analysis, &analysis, &rows, &RunMarks::default());
    Screen::build(&analysis, &work, &report, facts)
}

/// A function that was compiled eight times.
fn compiled() -> ScreenFacts {
    ScreenFacts {
        compiled: vec![Compiled {
            function: "forward".into(),
            times: 8,
            time: Nanos(20_000_000),
            ..Compiled::default()
        }],
        ..ScreenFacts::default()
    }
}

fn end() -> ScreenEnd {
    ScreenEnd {
        wrote: vec!["wrote mindprof-train (1.0 MB): trace.json.gz".into()],
        program: "train.py".into(),
        trace: Some("mindprof-train/trace.json.gz".into()),
        has_schedule: false,
        has_stacks: true,
    }
}

#[test]
fn the_error_of_shares_rests_on_the_samples_of_their_thread() {
    let mut part = Part::from(profile());
    // The 32 ms of the main thread hold 100 of its samples; 64 other threads have the rest.
    let sampling = mindprof_model::Sampling {
        interval_us: 320,
        samples: 6_500,
        main_samples: 110,
        dropped: 0,
    };
    sampling.write(&mut part.metadata);
    let screen = screen_of(
        part.into_profile().expect("the part stays sound"),
        ScreenFacts::default(),
    );
    let text = screen_text(&screen, &end());
    let expected = "shares are within 10.0 points (100 samples)";
    assert!(text.contains(expected), "{text}");
}

#[test]
fn the_first_screen_names_the_function_and_the_line() {
    let function = |first, last, name: &str| SourceFunction {
        first,
        last,
        name: name.into(),
    };
    let mut lines = vec![String::new(); 40];
    lines[11] = "    right += out[i].item()".into();
    let facts = ScreenFacts {
        sources: SourceFiles::new(vec![SourceFile {
            file: "train.py".into(),
            functions: vec![function(4, 6, "Net.forward"), function(10, 13, "metrics")],
            lines,
        }]),
        ..ScreenFacts::default()
    };
    assert_eq!(
        screen_text(&screen(facts), &end()),
        "\
mindprof: 75 % of the time is spent in metrics (train.py:12), mostly in
aten::item
  12 | right += out[i].item()

7 steps, median 4.00 ms (longest 4.00 ms): operators 100 %

Total   Own  Your code                 Mostly
 75 %  75 %  metrics (train.py:12)     aten::item
 25 %  25 %  Net.forward (train.py:5)  aten::addmm

Self  Calls  Operator     Mostly from               Dtype
75 %      8  aten::item   metrics (train.py:12)
25 %      8  aten::addmm  Net.forward (train.py:5)

wrote mindprof-train (1.0 MB): trace.json.gz
next: mindprof lines mindprof-train/trace.json.gz
"
        .replace(
            "metrics (train.py:12)    aten",
            "metrics (train.py:12)     aten"
        )
        .replace(
            "Your code                Mostly",
            "Your code                 Mostly"
        )
    );
}

#[test]
fn compilation_is_the_verdict_where_it_takes_most_of_the_time() {
    let facts = ScreenFacts {
        compiled: vec![Compiled {
            function: "forward".into(),
            file: "net.py".into(),
            line: 7,
            times: 8,
            time: Nanos(20_000_000),
            reason: Some("mode == 'wide'".into()),
        }],
        ..ScreenFacts::default()
    };
    let text = screen_text(&screen(facts), &end());
    let verdict = "mindprof: 62 % of the time is compilation: forward (net.py:7) 8 times, because\n\
                   mode == 'wide'\n";
    assert!(text.starts_with(verdict), "{text}");
    assert!(text.ends_with("next: TORCH_LOGS=recompiles python train.py\n"));
    assert_eq!(text.matches("forward (net.py:7)").count(), 1);
}

/// The sentence that the page of a trace begins with, which a run left with facts of its launcher.
fn first_sentence_of_page(profile: Profile, facts: &ScreenFacts, report: &RunReport) -> String {
    let mut part = Part::from(profile);
    part.metadata.set(RUN_FACTS_KEY, facts.run(report).json());
    let analysis = Analysis::build(part.into_profile().expect("the part stays sound"));
    let work = Work::of(&analysis);
    let explanation = Explanation::build(&analysis, &work, &OwnCode::default());
    headline_text(
        &explanation.headline,
        &explanation.advice,
        &explanation.sources,
    )
}

#[test]
fn the_page_of_a_run_begins_with_the_same_sentence() {
    let compiled = compiled();
    for (facts, begin) in [
        (
            ScreenFacts::default(),
            "75 % of the time is spent in metrics",
        ),
        (compiled, "62 % of the time is compilation"),
    ] {
        let screen = screen(facts.clone());
        let sentence = first_sentence_of_page(profile(), &facts, &screen.report);
        assert_eq!(sentence, headline(&screen));
        assert!(sentence.starts_with(begin), "{sentence}");
    }
}

#[test]
fn operators_outside_of_steps_count_for_no_step() {
    let screen = screen_of(profile_of(100, 500), ScreenFacts::default());
    let text = screen_text(&screen, &end());
    let expected = "in metrics (train.py:12), mostly in\naten::item: 100 operators in each step";
    assert!(text.contains(expected), "{text}");
}

#[test]
fn many_facts_keep_within_the_screen() {
    let facts = ScreenFacts {
        collections: (9, Nanos(10_000_000)),
        children: vec!["2 processes that run a very long name of a function".into(); 3],
        compiled: vec![Compiled {
            times: 2,
            time: Nanos(2_000_000),
            ..Compiled::default()
        }],
        ..ScreenFacts::default()
    };
    let text = screen_text(&screen(facts), &end());
    assert!(text.contains("compiled 2 times") && text.contains("garbage collection: 9 runs"));
    assert!(text.lines().count() <= LINES, "{text}");
    assert!(
        text.lines().all(|line| line.chars().count() <= WIDTH),
        "{text}"
    );
}

#[test]
fn a_place_that_is_too_long_keeps_its_line() {
    let fits = |limit| fitted("Net.forward", "models/resnet.py", 120, limit);
    assert_eq!(fits(40), "Net.forward (models/resnet.py:120)");
    assert_eq!(fits(30), "Net.forward (resnet.py:120)");
    assert_eq!(fits(25), "forward (resnet.py:120)");
    assert!(fits(20).ends_with("py:120)") && fits(20).len() <= 20);
}

#[test]
fn operators_and_findings_make_room_for_functions() {
    let mut screen = screen_of(profile_of(400, 0), ScreenFacts::default());
    let first = screen.advice.findings.first().cloned();
    let first = first.expect("hundreds of items are a finding");
    screen.advice.findings = vec![first; 3];
    let found = |text: &str| text.matches("to save about").count();
    let mut end = end();
    let text = screen_text(&screen, &end);
    assert_eq!(
        (found(&text), text.contains("aten::addmm  ")),
        (3, true),
        "{text}"
    );
    for _ in 0..8 {
        end.wrote.push("a line of the launcher".into());
        let text = screen_text(&screen, &end);
        assert!(text.lines().count() <= LINES, "{text}");
        assert!(text.contains("forward (train.py:5)"), "{text}");
    }
    // A second finding stays for longer than any operator.
    let text = screen_text(&screen, &end);
    assert_eq!(
        (found(&text), text.contains("aten::addmm  ")),
        (2, false),
        "{text}"
    );
    end.wrote
        .extend(["a line", "another", "a third"].map(Into::into));
    assert_eq!(found(&screen_text(&screen, &end)), 1);
}

// 20,000 operators of 150 ns in each step: recording one took far less than it usually does.
#[test]
fn shares_of_the_smallest_operators_are_parts_of_the_whole() {
    let mut part = Part::from(profile_of(20_000, 0));
    Recorder::default().write(&mut part.metadata);
    let profile = part.into_profile().expect("the part stays sound");
    let screen = screen_of(profile, ScreenFacts::default());
    let text = screen_text(&screen, &end());
    assert!(
        text.contains("without an estimated 30 % for the profiler itself"),
        "40 % of metrics: {text}"
    );
    let total = screen.headline.paths.total;
    let operators = &screen.headline.operators;
    let all = operators.iter().map(|one| one.called.time.0);
    assert!(all.clone().all(|time| time <= total.0), "{text}");
    assert!(operators.iter().all(|one| one.called.time > Nanos::ZERO));
}

#[test]
fn work_that_would_shrink_by_an_unknown_part_tells_its_time() {
    let screen = screen_of(profile_of(400, 0), ScreenFacts::default());
    let advice = &screen.advice;
    let mut finding = advice.findings[0].clone();
    finding.recorded = Nanos(advice.overhead.unrecorded.0 / 2 * advice.steps as u64);
    assert_eq!(stake_text(&finding, advice), None, "it has a price");
    finding.rule = RULES
        .iter()
        .find(|rule| rule.id == "underfilled-device")
        .expect("it exists");
    let expected = "this work takes 1.91 ms of an average step (50 %); how much less is not known";
    assert_eq!(stake_text(&finding, advice).as_deref(), Some(expected));
}

#[test]
fn findings_about_what_the_facts_tell_say_what_they_save() {
    let facts = compiled();
    let mut screen = screen_of(profile_of(400, 0), facts);
    let rule = RULES
        .iter()
        .copied()
        .find(|rule| rule.id == "recompilation");
    let finding = screen.advice.findings.first_mut();
    let finding = finding.expect("hundreds of items are a finding");
    finding.rule = rule.expect("it is a rule");
    finding.share = 0.95;
    let saves = "to save about 95 %: steps compile code";
    let text = screen_text(&screen, &end());
    assert!(text.contains(saves), "{text}");
    screen.advice.findings.truncate(1);
    screen.advice.findings[0].share = 0.001;
    let text = screen_text(&screen, &end());
    assert!(!text.contains("to save about"), "{text}");
}

// No replay prices it, and it is mended in one line.
#[test]
fn inference_that_records_graphs_is_told_without_a_price() {
    let mut screen = screen_of(profile_of(400, 0), ScreenFacts::default());
    let named = |id| RULES.iter().copied().find(|rule| rule.id == id);
    screen.advice.findings.truncate(1);
    let finding = &mut screen.advice.findings[0];
    finding.rule = named("inference-with-gradients").expect("it is a rule");
    finding.remedy = finding.rule.remedy;
    finding.share = 0.0;
    let text = screen_text(&screen, &end()).replace('\n', " ");
    let expected = "gradients are enabled, but nothing is trained, in metrics (train.py:12); with \
                    torch.inference_mode()";
    assert!(text.contains(expected), "{text}");
    screen.advice.findings[0].rule = named("dominant-operator").expect("it is a rule");
    let text = screen_text(&screen, &end());
    assert!(!text.contains("inference_mode"), "{text}");
}

#[test]
fn functions_that_the_verdict_names_are_the_last_to_go() {
    let mut part = Part::new();
    let thread = part.add_thread(Thread {
        process: 1,
        native: 1,
        name: StringTable::EMPTY,
        device: DeviceKind::Cpu,
    });
    // Ten functions that call each other, and beside them the one with the most time of its own.
    let mut start = 0;
    let mut add = |part: &mut Part, name: &str, frames: &[String], duration: u64| {
        let stack = frames.iter().fold(StackId::NONE, |caller, frame| {
            let frame = part.strings.intern(frame);
            part.stacks.push(caller, frame)
        });
        let name = part.strings.intern(name);
        let time = Nanos(duration * 1_000_000);
        let mut event = Event::new(Category::Operator, name, thread, Nanos(start), time);
        event.stack = stack;
        part.add_event(event);
        start += time.0;
    };
    let chain = (0..10).map(|depth| format!("train.py({}): step{depth}", 10 + depth));
    let chain: Vec<String> = std::iter::once("train.py(3): main".to_owned())
        .chain(chain)
        .collect();
    for depth in 2..=chain.len() {
        add(&mut part, "aten::mul", &chain[..depth], 6);
    }
    let guilty = [
        "train.py(3): main".to_owned(),
        "train.py(40): tokenize".to_owned(),
    ];
    add(&mut part, "aten::item", &guilty, 20);
    let profile = part.into_profile().expect("everything was added");
    let screen = screen_of(profile, ScreenFacts::default());
    for limit in 1..FUNCTIONS {
        let rows = function_rows(&screen, limit);
        assert_eq!(rows.len(), limit);
        let is_named = |row: &Vec<String>| row[2].contains("tokenize (train.py:40)");
        assert!(rows.iter().any(is_named), "{limit}: {rows:?}");
    }
    // A finding about a function deep in the chain.
    let mut screen = screen;
    let place = CodePlace {
        file: "train.py".into(),
        line: 17,
        function: "step7".into(),
    };
    let rule = RULES.iter().find(|rule| rule.id == "conversions");
    screen.advice.findings = vec![Finding {
        rule: rule.expect("it is a rule"),
        share: 0.1,
        low: 0.05,
        high: 0.2,
        time: Nanos(8_000_000),
        confidence: Confidence::High,
        place: Some(place),
        module: None,
        events: Vec::new(),
        count: 1,
        per_step: 1.0,
        recorded: Nanos(8_000_000),
        bytes: None,
        name: None,
        remedy: "",
        merged: Vec::new(),
    }];
    for limit in 2..FUNCTIONS {
        let rows = function_rows(&screen, limit);
        let is_named = |row: &Vec<String>| row[2].contains("step7 (train.py:");
        assert!(rows.iter().any(is_named), "{limit}: {rows:?}");
    }
}

#[test]
fn a_device_behind_the_cpu_tells_its_own_steps() {
    let mut screen = screen(ScreenFacts::default());
    screen.steps.device_p50 = Some(Nanos(23_500_000));
    let text = screen_text(&screen, &end());
    assert!(
        text.contains("steps, median 23.5 ms on the device; on the CPU 4.00 ms (longest"),
        "{text}"
    );
}
