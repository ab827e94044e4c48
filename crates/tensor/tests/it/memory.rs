//! Live bytes: what tensors hold, and no more.
//!
//! The count is one per process, so this needs a process of its own, as nextest gives it.

use mindtorch_tensor::{KeepDims, Tensor, live_bytes};

#[test]
fn live_bytes_return_to_where_they_were() {
    let before = live_bytes();
    {
        let x = Tensor::ones(&[4, 4], None).unwrap();
        assert_eq!(live_bytes() - before, 64);
        let view = x.t().unwrap();
        assert_eq!(live_bytes() - before, 64);
        let sum = x.add(&view).unwrap();
        assert_eq!(live_bytes() - before, 128);
        drop(x);
        assert_eq!(live_bytes() - before, 128, "the view keeps the storage");
        drop((view, sum));
        assert_eq!(live_bytes(), before);
        let y = Tensor::randn(&[3, 5], None).unwrap();
        y.add(2_i64).unwrap();
        y.mean(None, KeepDims::No, None).unwrap();
        y.matmul(&y).unwrap_err();
    }
    assert_eq!(live_bytes(), before);
}
