// The machine's own limits, in the protocol of child.ts: `limits THREADS`. It measures the least that a
// workload must do, on arrays of its size: multiply and add in registers, read, copy, or stream three arrays
// into a fourth.

#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef float vec __attribute__((vector_size(32), aligned(4)));
#define VECS 12

static int threads;
static const char* kind;
static long size; // multiply-adds, or floats an array
static float *a, *b, *c, *d;
static volatile float result;

static void fma_part(long n) {
  vec acc[VECS], x = {1.0f, 1.0f}, y = {0.5f, 0.5f};
  for (int i = 0; i < VECS; i++) acc[i] = x * (float)i;
  for (long k = 0; k < n / (8 * VECS); k++) {
    for (int i = 0; i < VECS; i++) acc[i] = acc[i] * y + x;
    __asm__ volatile("" : "+x"(y));
  }
  vec all = acc[0];
  for (int i = 1; i < VECS; i++) all += acc[i];
  result = all[0] + all[7];
}
static void read_part(long from, long to) {
  vec acc[8] = {{0}};
  for (long i = from; i + 64 <= to; i += 64)
    for (int j = 0; j < 8; j++) acc[j] += *(vec*)(a + i + 8 * j);
  vec all = acc[0];
  for (int i = 1; i < 8; i++) all += acc[i];
  result = all[0] + all[7];
}
static void copy_part(long from, long to) {
  for (long i = from; i + 8 <= to; i += 8) *(vec*)(d + i) = *(vec*)(a + i) + 1.0f;
}
static void stream_part(long from, long to) {
  for (long i = from; i + 8 <= to; i += 8) *(vec*)(d + i) = (*(vec*)(a + i) * *(vec*)(b + i) + *(vec*)(c + i)) * 0.5f;
}

static void* part(void* arg) {
  long i = (long)arg, from = size / threads * i, to = size / threads * (i + 1);
  if (!strcmp(kind, "fma")) fma_part(size / threads);
  else if (!strcmp(kind, "read")) read_part(from, to);
  else if (!strcmp(kind, "copy")) copy_part(from, to);
  else stream_part(from, to);
  return 0;
}
static void once(void) {
  pthread_t others[64];
  for (long i = 1; i < threads; i++) pthread_create(&others[i], 0, part, (void*)i);
  part(0);
  for (long i = 1; i < threads; i++) pthread_join(others[i], 0);
}
static double at(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}
static float* array(void) {
  float* p = malloc(size * sizeof(float));
  for (long i = 0; i < size; i++) p[i] = (float)(i % 7);
  return p;
}

static const struct { const char *workload, *kind; long size; } WORKLOADS[] = {
    {"matmul", "fma", 1L << 30},          {"conv", "fma", 8L * 64 * 56 * 56 * 32 * 9},
    {"relu", "stream", 1L << 24},         {"sum", "read", 1L << 24},
    {"softmax", "copy", 4096L * 1024},    {"layernorm", "copy", 4096L * 1024},
    {"var", "read", 4096L * 1024},        {"gpt2", "read", 124000000L},
};
#define N (sizeof WORKLOADS / sizeof *WORKLOADS)

int main(int argc, char** argv) {
  threads = argc > 1 ? atoi(argv[1]) : 1;
  char line[256], name[64];
  while (fgets(line, sizeof line, stdin)) {
    double ms;
    if (!strncmp(line, "workloads", 9)) {
      printf("{\"value\":[");
      for (unsigned i = 0; i < N; i++) printf("%s\"%s\"", i ? "," : "", WORKLOADS[i].workload);
      printf("]}\n");
    } else if (sscanf(line, "open %63s", name) == 1) {
      for (unsigned i = 0; i < N; i++)
        if (!strcmp(name, WORKLOADS[i].workload)) kind = WORKLOADS[i].kind, size = WORKLOADS[i].size;
      if (strcmp(kind, "fma")) a = array();
      if (!strcmp(kind, "stream")) b = array(), c = array();
      if (!strcmp(kind, "stream") || !strcmp(kind, "copy")) d = array();
      printf("{\"value\":true}\n");
    } else if (sscanf(line, "run %lf", &ms) == 1) {
      printf("{\"value\":[");
      double end = at(CLOCK_MONOTONIC) + ms;
      int first = 1;
      do {
        double wall = at(CLOCK_MONOTONIC), cpu = at(CLOCK_PROCESS_CPUTIME_ID);
        once();
        cpu = at(CLOCK_PROCESS_CPUTIME_ID) - cpu, wall = at(CLOCK_MONOTONIC) - wall;
        printf("%s[%.6f,%.6f]", first ? "" : ",", wall, cpu);
        first = 0;
      } while (at(CLOCK_MONOTONIC) < end);
      printf("]}\n");
    } else {
      free(a), free(b), free(c), free(d);
      a = b = c = d = 0;
      printf("{\"value\":true}\n");
    }
    fflush(stdout);
  }
}
