//! Merging of the ranks of a job into one profile.

use mindprof_model::{Kinship, Part, Profile, ProfileBuilder, Result};

/// Merges the ranks of a job into one profile, aligned by the wall clocks of their recordings.
///
/// Sequence numbers and correlation ids stay within their rank, and process ids that two ranks share
/// are made distinct. A part without a rank gets its position as the rank.
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
    for (place, mut part) in (0..).zip(ranks) {
        part.rank = part.rank.or(Some(place));
        match &mut builder {
            Some(builder) => builder.append(part, Kinship::Job),
            None => builder = Some(ProfileBuilder::from(part)),
        }
    }
    builder.unwrap_or_default().build()
}
