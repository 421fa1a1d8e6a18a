// SPDX-License-Identifier: Apache-2.0

package keys

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"sync/atomic"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/token"
)

// HadoopFile is the file in which a member's Hadoop ResourceManager stores its AMRM keys.
type HadoopFile struct {
	Member creel.SubclusterID
	Path   string
}

// HadoopNode is the file's path below yarn.resourcemanager.fs.state-store.uri.
const HadoopNode = "FSRMStateRoot/AMRMTokenSecretManagerRoot/AMRMTokenSecretManagerNode"

// maxHadoopFile bounds such a file, in bytes: two keys take some 40 bytes.
const maxHadoopFile = 64 << 10

// HadoopFiles reads the files in which Hadoop's ResourceManagers store their AMRM keys (FileSystemRMStateStore, on
// file systems mounted here). A file is read again when it changes. While a file cannot be read, its previous content
// applies.
type HadoopFiles struct {
	files []HadoopFile
	turn  chan struct{} // owned by the goroutine that checks the files
	read  []hadoopRead  // of each file; used by the owner of turn
	now   atomic.Pointer[hadoopKeys]
}

// hadoopRead is the state of a file at its last reading.
type hadoopRead struct {
	info fs.FileInfo
	err  error
}

// hadoopKeys has the keys of the files, and the outcome of the last check.
type hadoopKeys struct {
	rings map[creel.SubclusterID]token.Ring
	at    time.Time
	err   error
}

// OpenHadoopFiles reads the files. Each must exist and have keys. Without files it returns nil.
func OpenHadoopFiles(files []HadoopFile) (*HadoopFiles, error) {
	if len(files) == 0 {
		return nil, nil
	}
	f := &HadoopFiles{files: files, turn: make(chan struct{}, 1), read: make([]hadoopRead, len(files))}
	f.now.Store(&hadoopKeys{})
	f.look()
	return f, f.now.Load().err
}

// Run checks the files for changes every period until ctx ends. An unknown key triggers a check at once (refresh).
func (f *HadoopFiles) Run(ctx context.Context, every time.Duration) error {
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
			f.refresh(ctx)
		}
	}
}

// Err returns the error of the last check.
func (f *HadoopFiles) Err() error { return f.now.Load().err }

// OpenToAll lists the files that every user of this machine may read.
func (f *HadoopFiles) OpenToAll() (paths []string) {
	for _, file := range f.files {
		if info, err := os.Stat(file.Path); err == nil && info.Mode().Perm()&0o004 != 0 {
			paths = append(paths, file.Path)
		}
	}
	return paths
}

// keys returns the keys read last, by member. f may be nil.
func (f *HadoopFiles) keys() map[creel.SubclusterID]token.Ring {
	if f == nil {
		return nil
	}
	return f.now.Load().rings
}

// refresh checks the files, at most once per refreshPause. If a file system hangs, it blocks one goroutine, and the
// caller until ctx ends. f may be nil.
func (f *HadoopFiles) refresh(ctx context.Context) {
	if f == nil || time.Since(f.now.Load().at) < refreshPause {
		return
	}
	select {
	case f.turn <- struct{}{}:
	case <-ctx.Done():
		return
	}
	if time.Since(f.now.Load().at) < refreshPause { // another goroutine has checked meanwhile
		<-f.turn
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.look()
		<-f.turn
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// look reads the files that have changed. The caller must own the turn.
func (f *HadoopFiles) look() {
	next := &hadoopKeys{rings: map[creel.SubclusterID]token.Ring{}}
	maps.Copy(next.rings, f.now.Load().rings)
	var errs []error
	for i, file := range f.files {
		was := &f.read[i]
		info, err := os.Stat(file.Path)
		if err == nil && was.info != nil && os.SameFile(info, was.info) &&
			info.Size() == was.info.Size() && info.ModTime().Equal(was.info.ModTime()) {
			errs = append(errs, was.err)
			continue
		}
		var ring token.Ring
		if err == nil {
			ring, err = readHadoopFile(file.Path, info)
		}
		if errors.Is(err, fs.ErrNotExist) {
			// Hadoop removes the file before it renames the next one: meanwhile the content is in the .new file.
			if next, e := os.Stat(file.Path + ".new"); e == nil {
				ring, err = readHadoopFile(file.Path+".new", next)
			}
		}
		if err == nil {
			next.rings[file.Member] = ring
		} else {
			err = refused(file, err)
		}
		*was = hadoopRead{info: info, err: err}
		errs = append(errs, err)
	}
	next.at, next.err = time.Now(), errors.Join(errs...)
	f.now.Store(next)
}

// readHadoopFile reads the keys of one file; info was read before the content.
func readHadoopFile(path string, info fs.FileInfo) (token.Ring, error) {
	if !info.Mode().IsRegular() {
		return nil, errors.New("not a regular file")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() // opened only for reading
	b, err := io.ReadAll(io.LimitReader(f, maxHadoopFile+1))
	switch {
	case err != nil:
		return nil, err
	case len(b) > maxHadoopFile:
		return nil, fmt.Errorf("it is longer than %d bytes", maxHadoopFile)
	}
	ring, err := token.ParseAMRMKeys(b)
	if err != nil {
		return nil, fmt.Errorf("it has no AMRM keys: %w", err)
	}
	return ring, nil
}

// refused returns the error for a file that cannot be used.
func refused(file HadoopFile, err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	return &creel.Error{
		Kind: creel.ErrInvalidRequest,
		What: fmt.Sprintf("the AMRM keys of %s cannot be read from %s", file.Member, file.Path),
		Why:  err.Error(),
		Try:  "name the file " + HadoopNode + " of that ResourceManager's store, and let this user read it",
	}
}
