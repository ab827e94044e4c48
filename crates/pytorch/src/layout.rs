//! Where in torch's objects the facts lie that an observer needs. Found by `probe`, read by
//! `callbacks` and `inputs`.

/// How many bytes of a `RecordFunction` are looked at; it has 344 in torch 2.7 to 2.15.
pub(crate) const RECORD_BYTES: usize = 344;

/// Offsets in bytes within torch's objects, and the tags of its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// In a `RecordFunction`: the byte that says what kind of scope it is.
    pub scope: usize,
    /// In a `RecordFunction`: the sequence number, -1 for none.
    pub sequence: usize,
    /// In a `RecordFunction`: the thread of the forward operator, zero for none.
    pub forward_thread: usize,
    /// In a `RecordFunction`: the address of the inputs, and after it how many there are.
    pub inputs: usize,
    /// How values tell what they are.
    pub tags: Tags,
    /// In a list: the address of its first value, and after it that of its end.
    pub list_values: usize,
    /// In a list: its element type.
    pub list_type: usize,
    /// The element type of lists of tensors.
    pub tensor_type: u64,
}

/// The numbers by which a value tells its kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tags {
    /// A tensor.
    pub tensor: u32,
    /// An integer.
    pub int: u32,
    /// A floating-point number.
    pub double: u32,
    /// A truth value.
    pub bool: u32,
    /// A list.
    pub list: u32,
    /// A complex number, if one was found.
    pub complex: Option<ComplexNumbers>,
}

/// How complex numbers lie in memory: a value points to one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ComplexNumbers {
    /// The number by which a value tells that it is one.
    pub tag: u32,
    /// Behind the address that a value has: the real part, and after it the imaginary one.
    pub offset: usize,
}

impl ComplexNumbers {
    /// So many words behind the address of one are looked at: no more than it has.
    pub(crate) const WORDS: usize = 4;

    /// Finds a number that is known among the words behind the address of a value with a tag.
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

/// What kind of code a `RecordFunction` is around, as torch numbers it.
pub(crate) mod record_scope {
    pub(crate) const FUNCTION: u8 = 0;
    pub(crate) const BACKWARD_FUNCTION: u8 = 1;
    pub(crate) const USER_SCOPE: u8 = 7;
}
