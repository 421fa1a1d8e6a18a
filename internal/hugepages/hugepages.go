// SPDX-License-Identifier: Apache-2.0

// Package hugepages asks the kernel for pages of 2 MiB for this process's Go heap.
//
// A ResourceManager's decisions read nodes, containers and applications at random addresses in a heap of hundreds of
// MiB. So nearly each read also waits for a translation of its address. With pages of 2 MiB the processor caches all
// translations. Most kernels provide such pages only on request (transparent_hugepage is madvise), and the Go runtime
// does not request them.
//
// The price: the process returns memory in larger pieces. If free memory is fragmented, a fault may wait until the
// kernel has assembled 2 MiB. So huge pages are an option, not the default.
package hugepages

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unsafe"
)

// size of a huge page on the known processors.
const size = 2 << 20

// span is one mapping of the heap, in whole huge pages.
type span struct{ from, to uintptr }

// Keep requests huge pages for the heap now, and each second for its growth, until stop is called. The kernel provides
// them gradually. Keep fails if the kernel does not support them.
func Keep() (stop func(), err error) {
	if err := Advise(); err != nil {
		return nil, err
	}
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				_ = Advise() // it worked before; a failure is retried
			case <-done:
				return
			}
		}
	}()
	return func() { close(done); <-ended }, nil
}

// Advise requests huge pages for the current mappings of the heap.
func Advise() error { return each(adviseHuge) }

// Collapse is Advise, and waits until the used heap is in huge pages. It is for measurements, which cannot wait minutes
// for the kernel.
func Collapse() error {
	if err := Advise(); err != nil {
		return err
	}
	return each(func(s span) error {
		for at := s.from; at < s.to; at += size {
			_ = collapse(span{at, at + size}) // parts that were never touched have no pages
		}
		return nil
	})
}

func each(do func(span) error) error {
	if b, err := os.ReadFile(
		"/sys/kernel/mm/transparent_hugepage/enabled",
	); err != nil ||
		strings.Contains(string(b), "[never]") {
		return fmt.Errorf(
			"this kernel has no transparent huge pages: set /sys/kernel/mm/transparent_hugepage/enabled to madvise",
		)
	}
	f, err := os.Open("/proc/self/maps")
	if err != nil {
		return err
	}
	defer f.Close()
	spans, err := heap(f, uintptr(unsafe.Pointer(new([4096]int))))
	if err != nil {
		return err
	}
	for _, s := range spans {
		if err := do(s); err != nil {
			return fmt.Errorf("huge pages for the heap: %w", err)
		}
	}
	return nil
}

// heap returns the heap's mappings among those in maps (proc_pid_maps(5)). They are the writable anonymous mappings
// within the same 64 GiB as an object of the heap. The process maps nothing else there.
func heap(maps io.Reader, object uintptr) (spans []span, err error) {
	const window = 36
	lines := bufio.NewScanner(maps)
	for lines.Scan() {
		f := strings.Fields(lines.Text())
		var s span
		if len(f) < 5 || f[1] != "rw-p" || f[4] != "0" {
			continue
		}
		if _, err := fmt.Sscanf(f[0], "%x-%x", &s.from, &s.to); err != nil {
			return nil, fmt.Errorf("maps of this process: %q: %w", lines.Text(), err)
		}
		s.from, s.to = (s.from+size-1)/size*size, s.to/size*size
		if s.from>>window == object>>window && s.from < s.to {
			spans = append(spans, s)
		}
	}
	return spans, lines.Err()
}
