//! A whole profile in one page: its steps, what is slow in them and why, the user's functions and
//! the operators with most time.

use mindprof_analyze::Analysis;
use mindprof_model::Nanos;

use crate::advice::Advice;
use crate::charges::AllCharges;
use crate::completeness::Completeness;
use crate::functions::Functions;
use crate::headline::{Headline, Known, RunFacts};
use crate::own_code::OwnCode;
use crate::source_files::SourceFiles;
use crate::step_times::StepTimes;
use crate::steps::Step;
use crate::top_operators::{TopOperator, TopOperators};
use crate::work::Work;

/// The contents of a page about a profile.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// The time from the first to the last event.
    pub span: Nanos,
    /// The number of events.
    pub events: usize,
    /// The steps and what their time was spent on.
    pub steps: StepTimes,
    /// Why they are slow.
    pub advice: Advice,
    /// The user's functions.
    pub functions: Functions,
    /// The operators of the main thread by decreasing time.
    pub operators: Vec<TopOperator>,
    /// The basis of the first sentence.
    pub headline: Headline,
    /// The user's functions as the launcher of a run listed them.
    pub sources: SourceFiles,
    /// The number of lost events.
    pub lost: u64,
    /// The numbers of events that the profile has and that its recording had, if it was cut.
    pub cut: Option<(u64, u64)>,
}

impl Explanation {
    /// Draws all conclusions of the page.
    pub fn build(analysis: &Analysis, work: &Work, own: &OwnCode) -> Self {
        let profile = analysis.profile();
        let charges = AllCharges::build(analysis, work);
        let top = TopOperators::build(analysis, own, &charges.is_main);
        let steps = StepTimes::build(analysis, own);
        let known: Vec<Step> = steps.steps.iter().map(|time| time.step).collect();
        let sources = SourceFiles::read(profile.metadata());
        let mut run = RunFacts::read(profile.metadata());
        if run.rest == Nanos::ZERO {
            run.rest = profile.span();
        }
        let origin = Known {
            own,
            sources: &sources,
            run,
        };
        Self {
            span: profile.span(),
            events: profile.events().len(),
            operators: top.operators.clone(),
            headline: Headline::build(analysis, &charges, top, &known, origin),
            sources,
            steps,
            advice: Advice::build(analysis, own),
            functions: Functions::build(analysis, work, own),
            lost: profile.loss().total(),
            cut: Completeness::cut_of(profile),
        }
    }
}
