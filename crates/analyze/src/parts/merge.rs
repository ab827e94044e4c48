//! Merging of the ranks of a job into one profile.

use mindprof_model::{Error, Kinship, OperatorLimit, Part, Profile, ProfileBuilder, Result};

use super::slim::SLIM_KEY;

/// Merges the ranks of a job into one profile, aligned by the wall clocks of their recordings.
///
/// Sequence numbers and correlation ids stay within their rank, and process ids that two ranks share
/// are made distinct. A part without a rank gets its position as the rank. If ranks differ in a
/// value of the metadata, the first one wins, except that the records of cuts are all kept.
///
/// ```text
/// rank 0    |--step--|               reference 100
/// rank 1       |--step--|            reference 103
/// merged    |--step--|               process 7
///              |--step--|            process 8, renumbered from 7
/// ```
///
/// # Errors
/// If a part refers to a string, thread, stack or other entry that it does not contain, or if the
/// recordings of ranks had different limits.
pub fn merge(ranks: impl IntoIterator<Item = Part>) -> Result<Profile> {
    let mut builder: Option<ProfileBuilder> = None;
    let mut ranks: Vec<Part> = ranks.into_iter().collect();
    check_limits(&ranks)?;
    keep_cuts(&mut ranks);
    for (place, mut part) in (0..).zip(ranks) {
        part.rank = part.rank.or(Some(place));
        match &mut builder {
            Some(builder) => builder.append(part, Kinship::Job),
            None => builder = Some(ProfileBuilder::from(part)),
        }
    }
    builder.unwrap_or_default().build()
}

fn check_limits(ranks: &[Part]) -> Result<()> {
    let text = |part: &Part| {
        let limit = OperatorLimit::read(&part.metadata);
        limit.map_or_else(|| "None".to_owned(), |limit| limit.to_string())
    };
    let Some((first, others)) = ranks.split_first() else {
        return Ok(());
    };
    let first = text(first);
    match others.iter().map(text).find(|other| *other != first) {
        Some(other) => Err(Error::DifferentLimits { first, other }),
        None => Ok(()),
    }
}

/// Gives the first rank the records of the cuts of all of them, if several were cut:
/// `{"parts": [first, second]}`. The records are JSON, which is not parsed here.
fn keep_cuts(ranks: &mut [Part]) {
    let cuts: Vec<&str> = ranks
        .iter()
        .filter_map(|part| part.metadata.get(SLIM_KEY))
        .collect();
    if cuts.len() < 2 {
        return;
    }
    let all = format!("{{\"parts\": [{}]}}", cuts.join(", "));
    ranks[0].metadata.set(SLIM_KEY, all);
}

#[cfg(test)]
mod tests {
    use mindprof_model::Timeline;

    use super::*;

    #[test]
    fn ranks_with_different_limits_are_refused() {
        let merged = |limits: [Option<&str>; 2]| {
            merge(limits.map(|limit| {
                let mut part = Part::from(Timeline::draw(|time| time.op("mm", 3)));
                if let Some(limit) = limit.and_then(|limit| OperatorLimit::parse([limit]).ok()) {
                    limit.write(&mut part.metadata);
                }
                part
            }))
            .map(|_| ())
            .map_err(|error| error.to_string())
        };
        assert_eq!(merged([None, None]), Ok(()));
        assert_eq!(merged([Some("share=0.5"), Some("share=0.5")]), Ok(()));
        for limits in [
            [Some("share=0.5"), Some("share=0.1")],
            [None, Some("share=0.1")],
        ] {
            let error = merged(limits).unwrap_err();
            assert!(error.contains("only=share=0.1"), "{error}");
        }
    }

    #[test]
    fn records_of_cuts_are_kept_of_every_rank() {
        let cuts = |ranks: &[Option<&str>]| {
            let parts = ranks.iter().map(|cut| {
                let mut part = Part::from(Timeline::draw(|time| time.op("mm", 3)));
                if let Some(cut) = cut {
                    part.metadata.set(SLIM_KEY, *cut);
                }
                part
            });
            let merged = merge(parts).expect("the parts are whole");
            merged.metadata().get(SLIM_KEY).map(str::to_owned)
        };
        assert_eq!(cuts(&[None, None]), None);
        assert_eq!(cuts(&[None, Some("1")]).as_deref(), Some("1"));
        let both = Some("{\"parts\": [1, 2]}");
        assert_eq!(cuts(&[Some("1"), None, Some("2")]).as_deref(), both);
        assert_eq!(cuts(&[None, Some("1"), Some("2")]).as_deref(), both);
    }
}
