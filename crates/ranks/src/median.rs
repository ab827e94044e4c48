//! Robust statistics over integers, in linear time.

/// Returns the median, or `None` if there are no values. It is the lower one of two middle
/// values, so that it always occurs. It reorders the values.
pub(crate) fn median<T: Ord + Copy>(values: &mut [T]) -> Option<T> {
    let middle = values.len().checked_sub(1)? / 2;
    Some(*values.select_nth_unstable(middle).1)
}

/// Returns the median of the distances from a center: half of the values are at most so far away.
pub(crate) fn deviation(values: &[i64], center: i64) -> u64 {
    let mut distances: Vec<u64> = values.iter().map(|value| value.abs_diff(center)).collect();
    median(&mut distances).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_middle_values_the_lower_one_counts() {
        assert_eq!(median(&mut [5, 1, 9]), Some(5));
        assert_eq!(median(&mut [4, 1, 9, 2]), Some(2));
        assert_eq!(median::<u64>(&mut []), None);
        assert_eq!(deviation(&[-10, 0, 3, 1_000], 1), 2);
        assert_eq!(deviation(&[], 1), 0);
    }
}
