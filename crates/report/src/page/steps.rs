//! The steps of a profile: a chart of stacked bars, and a table with the same numbers.

use std::fmt::Write as _;

use mindprof_answers::{Step, StepClass, StepSplit};
use mindprof_model::Nanos;

use super::contents::Contents;
use super::kernels::part_text;
use super::markup::{escaped, escaped_lines, with_units};
use super::table::{Cell, Column, Kind, Table, column};
use crate::steps::{short_time, slow_text};

/// The largest number of bars. If there are more steps, the table has the others.
const MOST_BARS: usize = 400;

/// The number of bars that there is room for at least, so that few of them are not too wide.
const LEAST_BARS: usize = 10;

/// The height of the chart, in units of its own.
const HEIGHT: f64 = 160.0;

/// The width of a bar and of the gap after it.
const BAR: f64 = 40.0;
const GAP: f64 = 8.0;

/// The bars of a chart: steps as the CPU or the devices see them.
struct Bars<'a> {
    title: &'static str,
    /// The meaning of the bars, if that is not plain.
    about: Option<String>,
    shown: Vec<(&'a Step, &'a StepSplit, bool)>,
    split: &'a StepSplit,
    median: Nanos,
    has_python: bool,
}

/// Returns the charts of the steps as HTML; empty if there are none. If the devices are behind, the
/// first chart has their steps, as the verdict does.
pub(super) fn steps_chart(contents: &Contents<'_>) -> String {
    let times = &contents.explanation.steps;
    if contents.steps().is_empty() {
        return String::new();
    }
    let behind = contents.device_median();
    let mut html = String::new();
    if let Some(median) = behind {
        let device = &contents.device;
        let bars = device.steps.iter();
        let chart = Bars {
            title: "Steps on the device",
            about: Some(format!(
                "The device falls behind the CPU, so it sets the pace: the work of a step takes it {} in the \
                 median, whereas the CPU needs {}. While the device is idle, a bar shows what the CPU does.",
                short_time(median),
                short_time(times.p50),
            )),
            shown: bars.map(|one| (&one.step, &one.split, false)).collect(),
            split: &device.split,
            median,
            has_python: times.has_python,
        };
        html.push_str(&chart.html());
    }
    let bars = contents.steps().iter();
    let chart = Bars {
        title: if behind.is_some() {
            "Steps on the CPU"
        } else {
            "Steps"
        },
        about: behind.is_some().then(|| {
            "A bar shows the time in which the CPU issues the work of a step. The kernels in it run during \
             that time, and most of them belong to an earlier step."
                .into()
        }),
        shown: bars
            .map(|time| (&time.step, &time.split, time.is_slow))
            .collect(),
        split: &times.split,
        median: times.p50,
        has_python: times.has_python,
    };
    html + &chart.html() + &slow_list(contents)
}

impl Bars<'_> {
    fn html(&self) -> String {
        let shown = &self.shown[..self.shown.len().min(MOST_BARS)];
        let longest = shown.iter().map(|(step, ..)| step.duration.0).max();
        let longest = longest.unwrap_or(1).max(1);
        let width = shown.len().max(LEAST_BARS) as f64 * (BAR + GAP);
        let mut html = format!("<h2>{}</h2>\n", self.title);
        if let Some(about) = &self.about {
            let _ = writeln!(
                html,
                "<p class=\"quiet\">{}</p>",
                escaped(&with_units(about))
            );
        }
        let _ = writeln!(
            html,
            "<figure class=\"steps\">\n<div class=\"axis\"><span>{}</span><span>0</span></div>\n\
             <svg viewBox=\"0 0 {width} {HEIGHT}\" preserveAspectRatio=\"none\" role=\"group\" class=\"{}\" \
             aria-label=\"{}: the time of each by what it was spent on. The table of steps has the numbers.\">",
            escaped(&short_time(Nanos(longest))),
            bars_class(shown.len()),
            self.title,
        );
        let median = HEIGHT * (1.0 - self.median.0 as f64 / longest as f64);
        for (index, bar) in shown.iter().enumerate() {
            let x = index as f64 * (BAR + GAP) + GAP / 2.0;
            self.push_bar(&mut html, *bar, x, longest);
        }
        let _ = writeln!(
            html,
            "<line class=\"median\" x1=\"0\" x2=\"{width}\" y1=\"{median:.1}\" y2=\"{median:.1}\"/>\n</svg>"
        );
        let steps: Vec<&Step> = shown.iter().map(|(step, ..)| *step).collect();
        html.push_str(&labels(&steps));
        let _ = writeln!(
            html,
            "<figcaption>{}</figcaption>\n</figure>",
            self.legend()
        );
        if self.shown.len() > MOST_BARS {
            let _ = writeln!(
                html,
                "<p class=\"quiet\">The first {MOST_BARS} of {} steps are drawn; <a href=\"#step\">the table</a> has all.</p>",
                self.shown.len()
            );
        }
        html
    }

    fn push_bar(
        &self,
        html: &mut String,
        (step, split, is_slow): (&Step, &StepSplit, bool),
        x: f64,
        longest: u64,
    ) {
        let number = step.number;
        let slow = if is_slow { ", slow" } else { "" };
        let parts = || split.iter().filter(|(_, part)| part.0 > 0);
        let told: Vec<String> = parts()
            .map(|(class, part)| {
                let name = class_name(class, self.has_python);
                format!("{name} {}", short_time(part))
            })
            .collect();
        let _ = write!(
            html,
            "<a data-href=\"#step?step={number}\" aria-label=\"Step {number}: {0}{slow}\"><title>Step {number}: {0}{slow}\n{1}</title>\
             <rect class=\"bar\" x=\"{x}\" y=\"0\" width=\"{BAR}\" height=\"{HEIGHT}\"/>",
            short_time(step.duration),
            escaped_lines(&told.join("\n"))
        );
        let mut bottom = HEIGHT;
        for (class, part) in parts() {
            let height = HEIGHT * part.0 as f64 / longest as f64;
            bottom -= height;
            let _ = write!(
                html,
                "<rect class=\"class-{}\" x=\"{x}\" y=\"{bottom:.2}\" width=\"{BAR}\" height=\"{height:.2}\"/>",
                class as usize
            );
        }
        html.push_str("</a>\n");
    }

    /// Returns the classes with their colours and their shares.
    fn legend(&self) -> String {
        let total = self.split.total();
        let mut html = String::from("<ul class=\"legend\">");
        for (class, time) in self.split.iter().filter(|(_, time)| time.0 > 0) {
            let _ = write!(
                html,
                "<li><span class=\"swatch class-{}\"></span>{} <b>{}</b></li>",
                class as usize,
                escaped(class_name(class, self.has_python)),
                escaped(&part_text(time, total))
            );
        }
        let _ = write!(
            html,
            "<li><span class=\"swatch line\"></span>median <b>{}</b></li></ul>",
            escaped(&short_time(self.median))
        );
        html
    }
}

/// Returns the class of a chart, which decides its width.
const fn bars_class(bars: usize) -> &'static str {
    match bars {
        0..=12 => "few",
        _ => "many",
    }
}

/// Returns the numbers below the bars, as many as there is room for.
fn labels(steps: &[&Step]) -> String {
    let every = steps.len().div_ceil(20).max(1);
    let mut html = format!(
        "<div class=\"labels {}\" aria-hidden=\"true\">",
        bars_class(steps.len())
    );
    for chunk in steps.chunks(every) {
        let _ = write!(html, "<span>{}</span>", chunk[0].number);
    }
    for _ in steps.len()..LEAST_BARS {
        html.push_str("<span></span>");
    }
    html + "</div>\n"
}

const fn class_name(class: StepClass, has_python: bool) -> &'static str {
    match class {
        StepClass::Idle if !has_python => "Python or idle",
        class => class.name(),
    }
}

/// Returns the slow steps and what differed in them.
fn slow_list(contents: &Contents<'_>) -> String {
    let times = &contents.explanation.steps;
    if times.slow.is_empty() {
        return String::new();
    }
    let mut html = String::from("<ul class=\"facts\">\n");
    for slow in &times.slow {
        let number = slow.step.number;
        let what = slow_text(slow, times.has_python);
        let _ = writeln!(
            html,
            "<li><a data-href=\"#step?step={number}\">Step {number}</a> took {}, {} longer than the median: {}.</li>",
            escaped(&short_time(slow.step.duration)),
            escaped(&short_time(slow.excess)),
            escaped(&what)
        );
    }
    html + "</ul>\n"
}

/// Returns the table of the steps.
pub(super) fn steps_table(contents: &Contents<'_>) -> Table {
    let times = &contents.explanation.steps;
    let classes: Vec<StepClass> = times
        .split
        .iter()
        .filter(|(_, time)| time.0 > 0)
        .map(|(class, _)| class)
        .collect();
    let mut columns: Vec<Column> = vec![
        column("Step", Kind::Name, ""),
        column("Time", Kind::Time, "The wall time of the step."),
        column("Begins", Kind::Time, "The time since the recording began."),
    ];
    let heads = classes.iter();
    columns
        .extend(heads.map(|&class| column(class_title(class, times.has_python), Kind::Time, "")));
    columns.push(column("", Kind::Text, ""));
    let rows = times.steps.iter().map(|time| {
        let number = time.step.number;
        let mut row = vec![
            Cell::Link(format!("{number}"), format!("step?step={number}")),
            Cell::time(time.step.duration),
            Cell::time(time.step.start),
        ];
        row.extend(
            classes
                .iter()
                .map(|&class| Cell::time(time.split.time(class))),
        );
        row.push(Cell::text(if time.is_slow { "slow" } else { "" }));
        row
    });
    Table {
        id: "steps",
        caption: "Steps by what their time was spent on".into(),
        columns,
        rows: rows.collect(),
        sorted_by: None,
    }
    .without_empty_columns()
}

/// Returns the name of a class as the head of a column.
fn class_title(class: StepClass, has_python: bool) -> &'static str {
    match class {
        StepClass::Kernel => "Kernel",
        StepClass::Copy => "Copy",
        StepClass::Memset => "Memset",
        StepClass::Communication => "Communication",
        StepClass::Runtime => "Runtime",
        StepClass::DataLoading => "Data loading",
        StepClass::Operators => "Operators",
        StepClass::Python => "Python",
        StepClass::Idle if has_python => "Idle",
        StepClass::Idle => "Python or idle",
    }
}

/// Returns the pane of one step.
pub(super) fn step_pane(contents: &Contents<'_>) -> String {
    let mut html = String::from(STEP_PANE);
    html.push_str(&super::critical::path_section(contents));
    if !contents.steps().is_empty() {
        html.push_str("<h2>All steps</h2>\n");
        html.push_str(&steps_table(contents).html());
    }
    html
}

/// The timeline and what follows it, which scripts fill in.
const STEP_PANE: &str = "\
<h1 id=\"step-title\">Timeline</h1>
<div class=\"scripted\" hidden>
<div class=\"tools\" role=\"toolbar\" aria-label=\"Timeline\">
<label>Step <select id=\"step-choice\"></select></label>
<label>Find <input id=\"find\" type=\"search\" placeholder=\"a name\" autocomplete=\"off\"></label>
<button type=\"button\" id=\"find-next\">Next</button>
<span id=\"found\" class=\"quiet\" role=\"status\"></span>
<label class=\"check\"><input id=\"show-python\" type=\"checkbox\" checked> Python calls</label>
<span class=\"gap\"></span>
<button type=\"button\" id=\"zoom-in\" aria-label=\"Zoom in\">+</button>
<button type=\"button\" id=\"zoom-out\" aria-label=\"Zoom out\">&minus;</button>
<button type=\"button\" id=\"zoom-step\">Whole step</button>
<button type=\"button\" id=\"zoom-all\">Whole recording</button>
</div>
<div id=\"timeline\" class=\"stage\" tabindex=\"0\" role=\"application\" aria-label=\"Timeline of threads and streams\" aria-describedby=\"timeline-help\"></div>
<p id=\"timeline-help\" class=\"quiet\">Drag to select a range, Shift and drag to move, Ctrl and wheel to zoom. On the keyboard: W and S zoom, A and D move, arrow keys go from event to event, Enter opens all events of its name, Escape clears.</p>
<div id=\"selection\"></div>
</div>
<p class=\"scriptless\">The timeline needs scripts. The tables below do not.</p>
";
