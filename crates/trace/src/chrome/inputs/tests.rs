use mindprof_model::InputsTable;

use serde_json::value::RawValue;

use super::*;

fn every_kind() -> InputsEncoder {
    let mut encoder = InputsEncoder::default();
    encoder.tensor(DType::F32, &[3, 4], &[4, 1]);
    encoder.tensor(DType::I64, &[], &[]);
    encoder.tensor_list(2);
    encoder.tensor(DType::Unknown, &[2, 2], &[2, 1]);
    encoder.tensor(DType::Unknown, &[1, 2], &[2, 1]);
    encoder.tensor_list(0);
    encoder.int(-7);
    encoder.float(-0.1);
    encoder.bool(true);
    encoder.int_list(&[3, -8]);
    encoder.int_list(&[]);
    encoder.float_list(&[2.0, 0.5]);
    encoder.bool_list(&[true, false]);
    encoder.complex(0.0, 1.0);
    encoder.number_list(4);
    encoder.int(1);
    encoder.float(2.5);
    encoder.bool(true);
    encoder.other();
    encoder.number_list(1);
    encoder.complex(1.0, -2.0);
    encoder.other();
    encoder
}

fn arguments(encoder: &InputsEncoder) -> String {
    let mut table = InputsTable::new();
    let id = table.intern(encoder.words());
    inputs_arguments(table.inputs(id))
}

#[test]
fn the_four_lists_stand_side_by_side() {
    assert_eq!(
        arguments(&every_kind()),
        "\"Concrete Inputs\":[\"\",\"\",\"\",\"\",\"-7\",\"-0.10000000000000001\",\"True\",\"[3, -8]\",\"[]\",\"[2., 0.5]\",\"[True, False]\",\"0.+1.j\",\"[1, 2.5, True, None]\",\"[1.-2.j]\",\"\"]\
         ,\"Input type\":[\"float\",\"long int\",\"TensorList\",\"TensorList\",\"Scalar\",\"Scalar\",\"Scalar\",\"ScalarList\",\"ScalarList\",\"ScalarList\",\"ScalarList\",\"Scalar\",\"ScalarList\",\"ScalarList\",\"\"]\
         ,\"Input Strides\":[[4, 1],[],[[2, 1],[2, 1]],[],[],[],[],[],[],[],[],[],[],[],[]]\
         ,\"Input Dims\":[[3, 4],[],[[2, 2],[1, 2]],[],[],[],[],[],[],[],[],[],[],[],[]]"
    );
}

#[test]
fn what_is_shown_is_read_back() {
    #[derive(Deserialize)]
    struct Lists<'a> {
        #[serde(borrow, rename = "Concrete Inputs")]
        values: &'a RawValue,
        #[serde(borrow, rename = "Input type")]
        types: &'a RawValue,
        #[serde(borrow, rename = "Input Strides")]
        strides: &'a RawValue,
        #[serde(borrow, rename = "Input Dims")]
        dims: &'a RawValue,
    }
    let expected = every_kind();
    let text = format!("{{{}}}", arguments(&expected));
    let lists: Lists<'_> = serde_json::from_str(&text).unwrap();
    let raw = RawInputs {
        dims: lists.dims.get().as_bytes(),
        types: lists.types.get().as_bytes(),
        strides: lists.strides.get().as_bytes(),
        values: lists.values.get().as_bytes(),
        list_types: b"",
    };
    let mut found = InputsEncoder::default();
    raw.encode(&mut found);
    assert_eq!(found.words(), expected.words());
}

#[test]
fn the_types_of_tensors_in_lists_stand_apart() {
    let mut expected = InputsEncoder::default();
    expected.tensor_list(0);
    expected.tensor_list(2);
    expected.tensor(DType::BF16, &[2], &[1]);
    expected.tensor(DType::I64, &[], &[]);
    expected.tensor_list(1);
    expected.tensor(DType::F32, &[3], &[1]);
    let argument = list_types_argument(InputsIter::new(expected.words())).unwrap();
    let (key, list) = argument.split_once(':').unwrap();
    assert_eq!(key, "\"Input List type\"");
    assert!(!list.contains("[]"), "{list}");
    let raw = RawInputs {
        dims: b"[[],[[2],[]],[[3]]]",
        types: b"[\"TensorList\",\"TensorList\",\"TensorList\"]",
        strides: b"[[],[[1],[]],[[1]]]",
        values: b"[\"\",\"\",\"\"]",
        list_types: list.as_bytes(),
    };
    let mut found = InputsEncoder::default();
    raw.encode(&mut found);
    assert_eq!(found.words(), expected.words());
    assert_eq!(list_types_argument(InputsIter::new(&[])), None);
}

#[test]
fn floats_have_seventeen_digits() {
    for (value, text) in [
        (0.0, "0."),
        (1.0, "1."),
        (1.5, "1.5"),
        (-0.1, "-0.10000000000000001"),
        (1e-5, "1.0000000000000001e-05"),
        (1e20, "1e+20"),
        (1e16, "10000000000000000."),
        (123_456.75, "123456.75"),
        (f64::NAN, "nan"),
        (f64::INFINITY, "inf"),
    ] {
        assert_eq!(float_text(value), text);
    }
}

#[test]
fn long_lists_are_not_shown() {
    let mut encoder = InputsEncoder::default();
    encoder.int_list(&[1; 31]);
    assert!(arguments(&encoder).starts_with("\"Concrete Inputs\":[\"\"],\"Input type\":[\"\"]"));
}

#[test]
fn a_stream_that_is_not_a_number_is_no_argument() {
    for (value, shown) in [
        (KeywordValue::Int(7), Some("7")),
        (KeywordValue::Text("main".into()), None),
        (KeywordValue::Bool(true), None),
    ] {
        let mut encoder = InputsEncoder::default();
        encoder.keywords(&[("stream".to_owned(), value)]);
        let arguments = keyword_arguments(InputsIter::new(encoder.words()));
        let expected = shown.map(|number| ("stream".to_owned(), number.to_owned()));
        assert_eq!(arguments.into_iter().next(), expected);
    }
}

#[test]
fn keywords_are_arguments_of_their_own() {
    let values = [
        ("int", KeywordValue::Int(3)),
        ("float", KeywordValue::Float(2.0)),
        ("large", KeywordValue::Float(1e300)),
        ("infinite", KeywordValue::Float(f64::NEG_INFINITY)),
        ("truth", KeywordValue::Bool(true)),
        ("text", KeywordValue::Text("a \"b\"".into())),
        ("texts", KeywordValue::Texts(vec!["a".into(), "b".into()])),
        ("empty", KeywordValue::Texts(Vec::new())),
        ("External id", KeywordValue::Int(7)),
        ("none", KeywordValue::None),
        ("ints", KeywordValue::Ints(vec![1])),
    ];
    let mut encoder = InputsEncoder::default();
    encoder.keywords(&values.map(|(name, value)| (name.to_owned(), value)));
    let arguments = keyword_arguments(InputsIter::new(encoder.words()));
    let texts: Vec<String> = arguments
        .iter()
        .map(|(name, value)| format!("{name}: {value}"))
        .collect();
    assert_eq!(
        texts,
        [
            "int: 3",
            "float: 2.0",
            "large: 1e300",
            "infinite: \"-inf\"",
            "truth: true",
            "text: \"a \\\"b\\\"\"",
            "texts: [\"a\",\"b\"]",
            "empty: []",
            "user_External id: 7",
        ]
    );
}
