// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/resolver"
)

// MachineList is Hadoop's machine list in a file (yarn.federation.machine-list). It
// is read again when the file changes.
type MachineList struct {
	path      string
	at        time.Time // modification time of the file when read
	size      int64
	overrides []resolver.Override
	fresh     bool // the caller has not received them
}

// OpenMachineList reads a machine list; for the path "" it returns nil.
func OpenMachineList(path string) (*MachineList, error) {
	if path == "" {
		return nil, nil
	}
	l := &MachineList{path: path}
	return l, l.load()
}

// Read returns the present list, and whether it has changed since the last call. If the file cannot be read, it
// returns the previous list and an error.
func (l *MachineList) Read() (overrides []resolver.Override, changed bool, err error) {
	if l == nil {
		return nil, false, nil
	}
	if info, e := os.Stat(l.path); e != nil {
		err = unreadable(l.path)
	} else if !info.ModTime().Equal(l.at) || info.Size() != l.size {
		err = l.load()
	}
	changed, l.fresh = l.fresh, false
	return l.overrides, changed, err
}

// maxList limits the file, in bytes.
const maxList = 32 << 20

func (l *MachineList) load() error {
	f, err := os.Open(l.path)
	if err != nil {
		return unreadable(l.path)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return unreadable(l.path)
	}
	l.at, l.size = info.ModTime(), info.Size() // even of an invalid file, which is reported once
	text, err := io.ReadAll(io.LimitReader(f, maxList+1))
	if err != nil || len(text) > maxList {
		return unreadable(l.path)
	}
	overrides, err := resolver.ParseMachineList(string(text))
	if err != nil {
		return fmt.Errorf("%s: %w", l.path, err)
	}
	l.overrides, l.fresh = overrides, true
	return nil
}

func unreadable(path string) error {
	return &creel.Error{
		Kind: creel.ErrInvalidRequest,
		What: fmt.Sprintf("machine list %s cannot be read", path),
		Why:  "it is missing, unreadable, or longer than 32 MiB",
		Try:  "set yarn.federation.machine-list to a file of lines: host, subcluster, rack",
	}
}
