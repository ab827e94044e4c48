// A plugin of Kineto for an NPU that does not exist, so that recordings of one can be tested without the hardware.
//
// Kernels are made up by `npu_launch`. What is reported of them is what the plugin of torch_npu reports: kernels under numbers of
// their own from 2^30 on, and for each operator that launched some, an empty call on its thread that begins with the kernel.

#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include <IActivityProfiler.h>
#include <libkineto.h>
#include <torch/csrc/profiler/standalone/privateuse1_profiler.h>

namespace {

using libkineto::ActivityType;

struct Kernel {
  std::string name;
  int64_t start_ns;
  int64_t duration_ns;
  int64_t stream;
  int64_t thread;
};

std::mutex lock;
std::vector<Kernel> kernels;
bool is_recording = false;
int sessions = 0;

int64_t now_ns() {
  auto since = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(since).count();
}

class Session final : public libkineto::IActivityProfilerSession {
 public:
  void start() override {
    std::lock_guard<std::mutex> guard(lock);
    kernels.clear();
    is_recording = true;
    ++sessions;
  }

  void stop() override {
    std::lock_guard<std::mutex> guard(lock);
    is_recording = false;
  }

  std::vector<std::string> errors() override { return {}; }

  void processTrace(libkineto::ActivityLogger& logger) override {
    std::lock_guard<std::mutex> guard(lock);
    int32_t number = 0;
    for (const Kernel& kernel : kernels) {
      ++number;
      libkineto::GenericTraceActivity call;
      call.activityType = ActivityType::PRIVATEUSE1_RUNTIME;
      call.activityName = kernel.name;
      call.startTime = call.endTime = kernel.start_ns;
      call.device = getpid();
      call.resource = kernel.thread;
      call.id = number;
      call.flow.id = number;
      call.flow.type = libkineto::kLinkAsyncCpuGpu;
      call.flow.start = 1;
      call.log(logger);
      libkineto::GenericTraceActivity work;
      work.activityType = ActivityType::CONCURRENT_KERNEL;
      work.activityName = kernel.name;
      work.startTime = kernel.start_ns;
      work.endTime = kernel.start_ns + kernel.duration_ns;
      work.resource = kernel.stream;
      work.id = (1 << 30) + number;
      work.flow.id = number;
      work.flow.type = libkineto::kLinkAsyncCpuGpu;
      work.addMetadataQuoted("type", "AI_CORE");
      work.addMetadata("streamId", kernel.stream);
      work.log(logger);
    }
  }

  std::unique_ptr<libkineto::DeviceInfo> getDeviceInfo() override {
    return std::make_unique<libkineto::DeviceInfo>(libkineto::DeviceInfo{0, 0x1000000, "NPU", "Ascend NPU"});
  }

  std::vector<libkineto::ResourceInfo> getResourceInfos() override { return {}; }

  std::unique_ptr<libkineto::CpuTraceBuffer> getTraceBuffer() override { return nullptr; }
};

class Profiler final : public libkineto::IActivityProfiler {
 public:
  const std::string& name() const override { return name_; }

  const std::set<ActivityType>& availableActivities() const override { return kinds_; }

  std::unique_ptr<libkineto::IActivityProfilerSession> configure(
      const std::set<ActivityType>& kinds, const libkineto::Config&) override {
    return kinds.count(ActivityType::CONCURRENT_KERNEL) ? std::make_unique<Session>() : nullptr;
  }

  std::unique_ptr<libkineto::IActivityProfilerSession> configure(
      int64_t, int64_t, const std::set<ActivityType>& kinds, const libkineto::Config& config) override {
    return configure(kinds, config);
  }

 private:
  std::string name_ = "npu stand-in";
  std::set<ActivityType> kinds_ = {
      ActivityType::CONCURRENT_KERNEL, ActivityType::GPU_MEMCPY, ActivityType::PRIVATEUSE1_RUNTIME};
};

REGISTER_PRIVATEUSE1_PROFILER(Profiler);

} // namespace

extern "C" {

// Launches a kernel from the calling thread. It begins at once.
void npu_launch(const char* name, int64_t stream, int64_t duration_ns) {
  std::lock_guard<std::mutex> guard(lock);
  if (is_recording) {
    kernels.push_back({name, now_ns(), duration_ns, stream, syscall(SYS_gettid)});
  }
}

// Returns how often a recording was started.
int npu_sessions() {
  std::lock_guard<std::mutex> guard(lock);
  return sessions;
}

}
