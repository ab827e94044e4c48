//! Checks that live bytes count the storages of live tensors, and nothing else.
//!
//! The counter is process-wide, so these tests need a process of their own, which nextest provides.

use mindtorch_tensor::{Autocast, DType, KeepDims, Tensor};
use mindtorch_tensor::{enter_autocast, leave_autocast, live_bytes};

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

#[test]
fn casts_of_parameters_live_until_the_outermost_region_ends() {
    let before = live_bytes();
    {
        let weight = Tensor::ones(&[4, 4], None).unwrap();
        weight.set_requires_grad(true).unwrap();
        let held = live_bytes();
        let setting = Autocast {
            enabled: true,
            dtype: DType::BF16,
            caches: true,
        };
        let outer = enter_autocast(setting);
        let inner = enter_autocast(setting);
        drop(weight.mm(&weight).unwrap());
        leave_autocast(inner);
        assert_eq!(live_bytes() - held, 32, "the cast is kept");
        leave_autocast(outer);
        assert_eq!(live_bytes(), held);
    }
    assert_eq!(live_bytes(), before);
}
