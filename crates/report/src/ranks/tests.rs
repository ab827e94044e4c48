use super::notes::singular;
use super::*;

fn label(rank: u32) -> RankLabel {
    RankLabel {
        rank: Some(rank),
        host: None,
        file: format!("rank{rank}.json"),
    }
}

#[test]
fn ranks_are_named_or_counted() {
    let ranks: Vec<RankLabel> = (3..9).map(label).collect();
    assert_eq!(ranks_words(&ranks[..1]), "rank 3");
    assert_eq!(ranks_words(&ranks[..3]), "ranks 3, 4 and 5");
    assert_eq!(ranks_words(&ranks), "6 ranks (3, 4, 5, 6 …)");
    let unnumbered = RankLabel {
        rank: None,
        ..label(0)
    };
    assert_eq!(ranks_words(&[unnumbered]), "rank0.json");
}

#[test]
fn without_ranks_the_text_says_so() {
    let layout = RanksLayout {
        rows: 8,
        width: Some(80),
    };
    let text = ranks_text(&JobAnswer::default(), layout);
    assert_eq!(text, "There is no rank to tell anything about.\n");
}

#[test]
fn one_file_is_told_in_the_singular() {
    assert_eq!(
        singular("repeat a rank and are left out"),
        "repeats a rank and is left out"
    );
    assert_eq!(singular("do not tell their rank"), "does not tell its rank");
}

#[test]
fn ranks_that_recorded_other_operators_are_told() {
    let mut answer = JobAnswer::default();
    answer.roster.limits = vec![(label(3), "share=0.5".into()), (label(5), "depth=1".into())];
    assert_eq!(
        roster_notes(&answer),
        [
            "ranks 3 and 5 recorded other operators than most, and these are not compared: \
             rank 3 recorded share=0.5"
        ]
    );
}
