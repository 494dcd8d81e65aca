// The queue of samples: batch by batch, each sample once, no thread left waiting after close.
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "core/pipeline/sample_queue.h"

using namespace headrace;
using Task = SampleQueue::Task;

namespace {

std::shared_ptr<Batch> batch_of(int samples) {
  auto batch = std::make_shared<Batch>();
  batch->rows.resize(static_cast<size_t>(samples));
  batch->unclaimed.reset(samples);
  batch->remaining = samples;
  return batch;
}

}  // namespace

TEST_CASE("samples come batch by batch, in order") {
  SampleQueue queue;
  const auto first = batch_of(3), second = batch_of(2);
  queue.push(first);
  queue.push(second);
  Task task;
  for (int i = 0; i < 3; ++i) {
    REQUIRE(queue.pop(task));
    CHECK(task.batch == first);
    CHECK(task.sample == i);
  }
  for (int i = 0; i < 2; ++i) {
    REQUIRE(queue.pop(task));
    CHECK(task.batch == second);
    CHECK(task.sample == i);
  }
  CHECK_FALSE(queue.try_pop(task));
}

TEST_CASE("the sample at a distance may be in a later batch") {
  SampleQueue queue;
  const auto first = batch_of(3), second = batch_of(1), third = batch_of(2);
  for (const auto& batch : {first, second, third}) queue.push(batch);
  Task task;
  REQUIRE(queue.pop(task));
  const auto at = [&](int distance) {
    const Task found = queue.after(task, distance);
    return std::pair(found.batch, found.sample);
  };
  CHECK(at(2) == std::pair(first, 2));
  CHECK(at(3) == std::pair(second, 0));
  CHECK(at(5) == std::pair(third, 1));
  CHECK(at(6).first == nullptr);
  while (task.batch != second) REQUIRE(queue.pop(task));  // the first batch has left the queue
  CHECK(at(2) == std::pair(third, 1));
}

TEST_CASE("workers share a batch before anybody begins the next") {
  SampleQueue queue;
  const auto first = batch_of(3), second = batch_of(1);
  queue.push(first);
  queue.push(second);
  Task a, b;
  CHECK((queue.pop(a) && a.batch == first && a.sample == 0));
  CHECK((queue.pop(b) && b.batch == first && b.sample == 1));
  CHECK((queue.pop(b) && b.batch == first && b.sample == 2));
  CHECK((queue.pop(a) && a.batch == second && a.sample == 0));
  CHECK_FALSE(queue.try_pop(b));
}

TEST_CASE("a batch pushed to the front comes after the worker's own one and before all others") {
  SampleQueue queue;
  const auto first = batch_of(2), second = batch_of(1), repair = batch_of(1);
  queue.push(first);
  queue.push(second);
  Task task;
  CHECK((queue.pop(task) && task.batch == first));
  queue.push_front(repair);
  CHECK((queue.pop(task) && task.batch == first));
  CHECK((queue.pop(task) && task.batch == repair));
  CHECK((queue.pop(task) && task.batch == second));
  CHECK_FALSE(queue.try_pop(task));
}

TEST_CASE("an empty queue says so at once, and keeps no batch alive") {
  SampleQueue queue;
  Task task;
  CHECK_FALSE(queue.try_pop(task));
  const auto batch = batch_of(1);
  queue.push(batch);
  REQUIRE(queue.try_pop(task));
  CHECK(batch.use_count() == 3);  // held by this test, the queue and the task
  CHECK_FALSE(queue.try_pop(task));
  CHECK(task.batch == nullptr);
  CHECK(batch.use_count() == 1);
}

TEST_CASE("the rest of a cancelled batch is passed over") {
  SampleQueue queue;
  const auto cancelled = batch_of(5), next = batch_of(1);
  queue.push(cancelled);
  queue.push(next);
  Task task;
  REQUIRE(queue.pop(task));
  cancelled->cancelled = true;
  REQUIRE(queue.pop(task));
  CHECK(task.batch == next);
  CHECK(cancelled.use_count() == 1);
}

TEST_CASE("close stops workers in the middle of a batch") {
  SampleQueue queue;
  const auto batch = batch_of(1000), later = batch_of(1);
  queue.push(batch);
  queue.push(later);
  Task task;
  REQUIRE(queue.pop(task));
  queue.close();
  CHECK_FALSE(queue.pop(task));
  CHECK_FALSE(queue.try_pop(task));
  CHECK(batch.use_count() == 1);
  CHECK(later.use_count() == 1);
}

TEST_CASE("a sleeping worker is woken by a batch, and by close") {
  SampleQueue queue;
  std::atomic<int> taken{0};
  std::vector<std::thread> workers;
  for (int i = 0; i < 3; ++i) {
    workers.emplace_back([&] {
      for (Task task; queue.pop(task);) ++taken;
    });
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  queue.push(batch_of(4));
  while (taken < 4) std::this_thread::yield();
  queue.close();
  for (std::thread& worker : workers) worker.join();
  CHECK(taken == 4);
}

TEST_CASE("a worker that is not wanted lets its batch go, and the others take the rest of it") {
  SampleQueue queue;
  const auto batch = batch_of(3);
  queue.push(batch);
  Task first, second;
  const auto no_work = [] { return false; };
  REQUIRE(queue.pop(first, no_work, 0));
  REQUIRE(queue.pop(second, no_work, 1));
  queue.want(1);
  std::thread sleeper([&] { CHECK_FALSE(queue.stand_by(second, 1)); });  // until the queue is closed
  REQUIRE(queue.stand_by(first, 0));
  REQUIRE(queue.pop(first, no_work, 0));
  CHECK(first.sample == 2);
  queue.close();
  sleeper.join();
  CHECK(second.batch == nullptr);
}

TEST_CASE("a worker that waits for a sample leaves when it is not wanted any more") {
  SampleQueue queue;
  std::thread waiting([&] {
    Task task;
    CHECK(queue.pop(task, [] { return false; }, 1));
    CHECK(task.batch == nullptr);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  queue.want(1);
  waiting.join();
}

TEST_CASE("a worker that is not wanted takes no sample of a batch that is queued already") {
  SampleQueue queue;
  queue.want(1);
  queue.push(batch_of(2));
  Task task;
  CHECK(queue.pop(task, [] { return false; }, 1));
  CHECK(task.batch == nullptr);
  CHECK(queue.pop(task, [] { return false; }, 0));
  CHECK(task.sample == 0);
}

TEST_CASE("many workers and feeders: each sample is taken once") {
  SampleQueue queue;
  constexpr int kBatches = 200;
  std::vector<std::shared_ptr<Batch>> batches;
  std::vector<std::unique_ptr<std::atomic<int>[]>> taken;
  for (int i = 0; i < kBatches; ++i) {
    batches.push_back(batch_of(i % 17));
    taken.push_back(std::make_unique<std::atomic<int>[]>(17));
  }
  std::vector<std::thread> threads;
  std::atomic<int> left{0};
  for (const auto& batch : batches) left += batch->size();
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([&] {
      for (Task task; queue.pop(task);) {
        size_t number = 0;
        while (batches[number] != task.batch) ++number;
        ++taken[number][static_cast<size_t>(task.sample)];
        --left;
      }
    });
  }
  for (int half = 0; half < 2; ++half) {
    threads.emplace_back([&, half] {
      for (size_t i = static_cast<size_t>(half); i < kBatches; i += 2) {
        i % 7 == 0 ? queue.push_front(batches[i]) : queue.push(batches[i]);
      }
    });
  }
  while (left > 0) std::this_thread::yield();
  queue.close();
  for (std::thread& thread : threads) thread.join();
  int wrong = 0;
  for (size_t i = 0; i < kBatches; ++i)
    for (int k = 0; k < 17; ++k) wrong += taken[i][static_cast<size_t>(k)] != (k < batches[i]->size() ? 1 : 0);
  CHECK(wrong == 0);
  for (const auto& batch : batches) CHECK(batch.use_count() == 1);
}

TEST_CASE("failures are handed over once") {
  Batch batch;
  std::thread([&] { batch.fail(3, Stage::kRead, 2, "gone"); }).join();
  const std::vector<Failure> failures = batch.take_failures();
  REQUIRE(failures.size() == 1);
  CHECK(failures[0].sample == 3);
  CHECK(failures[0].os_errno == 2);
  CHECK(failures[0].reason == "gone");
  CHECK(batch.take_failures().empty());
}

TEST_CASE("a batch's id is its own") {
  const Batch first, second;
  CHECK(first.id != second.id);
}
