//! Many profiles as one: the ranks of a job on one time axis.

use mindprof_model::{Kinship, Part, Profile, ProfileBuilder, Result};

/// Puts the ranks of a job into one profile, by the wall clocks that they were recorded with.
/// Whatever ties events together ties them within their rank; process numbers that two ranks share
/// are told apart. A part that has no rank takes its place for one.
///
/// ```text
/// rank 0    |--step--|               reference 100
/// rank 1       |--step--|            reference 103
/// merged    |--step--|               process 7
///              |--step--|            process 8, though it said 7
/// ```
///
/// # Errors
/// When a part names what it does not hold.
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
