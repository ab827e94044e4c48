//! Merging of the ranks of a job into one profile.

use mindprof_model::{Kinship, Part, Profile, ProfileBuilder, Result};

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
/// If a part refers to a string, thread, stack or other entry that it does not contain.
pub fn merge(ranks: impl IntoIterator<Item = Part>) -> Result<Profile> {
    let mut builder: Option<ProfileBuilder> = None;
    let mut ranks: Vec<Part> = ranks.into_iter().collect();
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
