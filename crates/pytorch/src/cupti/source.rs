//! Records of devices as raw events of torch's collector, so that both go through one reader.

use mindprof_model::{Category, DeviceKind, InputsEncoder, Part, StackId, StringId, StringTable};

use super::arguments::ArgumentsId;
use super::records::{Place, Records};
use crate::error::{Error, Result};
use crate::raw_results::{RawEvent, RawEvents};

impl RawEvents for Records {
    type Error = Error;

    fn len(&self) -> usize {
        self.list.len()
    }

    fn names(&self, strings: &mut StringTable) -> Result<Vec<StringId>> {
        let ids: Vec<StringId> = self.names.iter().map(|name| strings.intern(name)).collect();
        let names = self.list.iter().map(|record| ids[record.name as usize]);
        Ok(names.collect())
    }

    fn event(&self, position: usize) -> Result<RawEvent> {
        let record = &self.list[position];
        let (device, device_index, resource, category) = match record.place {
            Place::Thread(thread) => (
                DeviceKind::Cpu,
                self.process.into(),
                thread.into(),
                Some(Category::Runtime),
            ),
            Place::Collector => (DeviceKind::Cpu, -1, 0, Some(Category::Other)),
            Place::Stream { device, stream } => {
                (DeviceKind::Cuda, device.into(), stream.into(), None)
            }
        };
        Ok(RawEvent {
            start_ns: record.start_ns.into(),
            end_ns: record.end_ns.into(),
            start_thread: 0,
            end_thread: 0,
            forward_thread: 0,
            scope: 0,
            sequence: -1,
            device,
            device_index,
            resource,
            correlation: record.correlation.into(),
            linked: 0,
            external: Some(0),
            is_async: false,
            is_hidden: false,
            is_annotation: false,
            is_python: false,
            activity: category,
        })
    }

    fn bytes(&self, _position: usize) -> Result<i64> {
        Ok(0)
    }

    fn stack(&self, _position: usize, _part: &mut Part) -> Result<StackId> {
        Ok(StackId::NONE)
    }

    fn arguments(&self, position: usize) -> Result<Option<String>> {
        let record = &self.list[position];
        let duration_ns = record.end_ns - record.start_ns;
        Ok(self.arguments.text(record.arguments, duration_ns))
    }

    fn arguments_key(&self, position: usize) -> Option<u32> {
        match self.list[position].arguments {
            ArgumentsId::Kernel(place) => Some(place),
            ArgumentsId::None | ArgumentsId::Transfer(_) | ArgumentsId::Synchronization(_) => None,
        }
    }

    fn inputs(&self, _position: usize, _inputs: &mut InputsEncoder) -> Result<()> {
        Ok(())
    }
}
