// SPDX-License-Identifier: Apache-2.0

package hadoopstate

import (
	"context"
	"errors"
	"fmt"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/token"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/subcluster/rm/zkstate"
)

// State is the state of a Hadoop ResourceManager.
type State struct {
	Epoch        int64 // of the next start
	Apps         []App // by id
	AMRM         token.KeyState
	Keys         []token.DelegationKey
	Tokens       []token.DelegationRecord
	Sequence     int32 // of the newest delegation token
	Reservations int
}

// App is an application with its attempts by number.
type App struct {
	ID       creel.ApplicationID
	Data     *pb.ApplicationStateDataProto
	Attempts []*pb.ApplicationAttemptStateDataProto
}

// Nodes is a ZooKeeper. zkstate.Session implements it. The error of a missing node wraps fs.ErrNotExist.
type Nodes interface {
	Get(ctx context.Context, path string) (data []byte, changed int64, err error)
	Children(ctx context.Context, path string) ([]string, error)
	Make(ctx context.Context, path string) error
	Create(ctx context.Context, nodes []zkstate.Node) error
	Set(ctx context.Context, n zkstate.Node) error
	Delete(ctx context.Context, path string) error
}

// These are errors of Read and Write.
var (
	ErrNoState  = errors.New("there is no state of a Hadoop ResourceManager")
	ErrChanging = errors.New("a ResourceManager changed the state during the copy: stop it first")
	ErrOccupied = errors.New("there is a state already: choose another path, or delete it by yarn resourcemanager -format-state-store")
)

// Names of nodes.
const (
	rootName         = "/ZKRMStateRoot"
	versionName      = "/RMVersionNode"
	epochName        = "/EpochNode"
	appsName         = "/RMAppRoot"
	appsSplitName    = "/RMAppRoot/HIERARCHIES"
	secretsName      = "/RMDTSecretManagerRoot"
	tokensName       = "/RMDTSecretManagerRoot/RMDelegationTokensRoot"
	keysName         = "/RMDTSecretManagerRoot/RMDTMasterKeysRoot"
	sequenceName     = "/RMDTSecretManagerRoot/RMDTSequentialNumber"
	amrmName         = "/AMRMTokenSecretManagerRoot"
	reservationsName = "/ReservationSystemRoot"

	appPrefix     = "application_"
	attemptPrefix = "appattempt_"
	tokenPrefix   = "RMDelegationToken_"
	keyPrefix     = "DelegationKey_"

	splits = 4 // greatest number of characters that are split off a name
)

// Versions of a state. A state is read if its major version is Hadoop's, and it has AMRM keys of their own, since 1.2.
const (
	major      = 1
	oldest     = 2
	minor      = 5
	unfinished = 1002 // major version of a state whose Write has not ended
	creels     = 1001 // major version of creel's own state
)

func rootOf(parent string) string {
	if parent == "/" {
		return rootName
	}
	return parent + rootName
}

// versionError explains a version that cannot be read.
func versionError(v *pb.VersionProto) error {
	switch {
	case v.GetMajorVersion() == creels:
		return fmt.Errorf("%w: it is creel's own", ErrNoState)
	case v.GetMajorVersion() == unfinished:
		return fmt.Errorf("%w: creel rm export did not end: repeat it", ErrNoState)
	case v.GetMajorVersion() != major || v.GetMinorVersion() < oldest:
		return fmt.Errorf("the state has version %d.%d, and creel reads %d.%d to %d.%d",
			v.GetMajorVersion(), v.GetMinorVersion(), major, oldest, major, minor)
	}
	return nil
}
