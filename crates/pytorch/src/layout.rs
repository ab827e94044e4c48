//! The offsets of facts in torch's objects. `probe` finds them; `callbacks` and `inputs` read by
//! them.

/// The size in bytes of a `RecordFunction` in torch 2.7 to 2.15.
pub(crate) const RECORD_BYTES: usize = 344;

/// Byte offsets in torch's objects, and the tags of its values. [`Probe`](crate::Probe) finds them,
/// because they differ between builds of torch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// In a `RecordFunction`: the byte with the kind of scope.
    pub scope: usize,
    /// In a `RecordFunction`: the sequence number, -1 if it has none.
    pub sequence: usize,
    /// In a `RecordFunction`: the thread of the forward operator, zero if it has none.
    pub forward_thread: usize,
    /// In a `RecordFunction`: the address of the inputs, followed by their number.
    pub inputs: usize,
    /// In a `RecordFunction`: the handle by which execution traces refer to it, zero if nobody needs
    /// it. `None` if the probe did not find it.
    pub handle: Option<usize>,
    /// The tags of values.
    pub tags: Tags,
    /// In a list: the address of its first value, followed by that of their end.
    pub list_values: usize,
    /// In a list: its element type.
    pub list_type: usize,
    /// The element type of lists of tensors.
    pub tensor_type: u64,
}

/// The tags that identify the kind of a value. They are numbered differently in different versions
/// of torch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tags {
    /// A tensor.
    pub tensor: u32,
    /// An integer.
    pub int: u32,
    /// A floating-point number.
    pub double: u32,
    /// A Boolean.
    pub bool: u32,
    /// A list.
    pub list: u32,
    /// A complex number, if the probe found one.
    pub complex: Option<ComplexNumbers>,
}

/// The layout of complex numbers, which values point to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ComplexNumbers {
    /// The tag of complex numbers.
    pub tag: u32,
    /// The offset, from the address in the value, of the real part; the imaginary part follows.
    pub offset: usize,
}

impl ComplexNumbers {
    /// How many words behind the address are examined: no more than a complex number has.
    pub(crate) const WORDS: usize = 4;

    /// Finds a known number among the words behind the address of a value with a tag.
    pub(crate) fn find(
        tag: u32,
        words: [u64; Self::WORDS],
        (real, imaginary): (f64, f64),
    ) -> Option<Self> {
        let parts = [real.to_bits(), imaginary.to_bits()];
        let word = words.windows(2).position(|pair| pair == parts)?;
        let offset = word * size_of::<u64>();
        Some(Self { tag, offset })
    }
}

/// The kinds of scopes, as numbered by torch's `RecordScope`.
pub(crate) mod record_scope {
    pub(crate) const FUNCTION: u8 = 0;
    pub(crate) const BACKWARD_FUNCTION: u8 = 1;
    pub(crate) const USER_SCOPE: u8 = 7;
}
