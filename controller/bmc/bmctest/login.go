package bmctest

import (
	"context"
	"fmt"

	"github.com/metalab-dev/metalab/controller/bmc"
)

// login is a client of a Fake with an account: it fails when the account changes.
type login struct {
	fake        *Fake
	credentials bmc.Credentials
}

func (l *login) allowed() error {
	l.fake.mu.Lock()
	defer l.fake.mu.Unlock()
	if !l.fake.accepts(l.credentials) {
		return fmt.Errorf("bmctest: %w", bmc.ErrUnauthorized)
	}
	return nil
}

func (l *login) System(ctx context.Context) (bmc.System, error) {
	if err := l.allowed(); err != nil {
		return bmc.System{}, err
	}
	return l.fake.System(ctx)
}

func (l *login) SetPower(ctx context.Context, a bmc.PowerAction) error {
	if err := l.allowed(); err != nil {
		return err
	}
	return l.fake.SetPower(ctx, a)
}

func (l *login) SetBoot(ctx context.Context, b bmc.Boot) error {
	if err := l.allowed(); err != nil {
		return err
	}
	return l.fake.SetBoot(ctx, b)
}

func (l *login) Identify(ctx context.Context, on bool) error {
	if err := l.allowed(); err != nil {
		return err
	}
	return l.fake.Identify(ctx, on)
}

func (l *login) Log(ctx context.Context) ([]bmc.Entry, error) {
	if err := l.allowed(); err != nil {
		return nil, err
	}
	return l.fake.Log(ctx)
}

func (l *login) ClearLog(ctx context.Context) error {
	if err := l.allowed(); err != nil {
		return err
	}
	return l.fake.ClearLog(ctx)
}

func (l *login) Sensors(ctx context.Context) ([]bmc.Sensor, error) {
	if err := l.allowed(); err != nil {
		return nil, err
	}
	return l.fake.Sensors(ctx)
}

func (l *login) Media(ctx context.Context) (bmc.Media, error) {
	if err := l.allowed(); err != nil {
		return bmc.Media{}, err
	}
	return l.fake.Media(ctx)
}

func (l *login) InsertMedia(ctx context.Context, urls ...string) error {
	if err := l.allowed(); err != nil {
		return err
	}
	return l.fake.InsertMedia(ctx, urls...)
}

func (l *login) EjectMedia(ctx context.Context) error {
	if err := l.allowed(); err != nil {
		return err
	}
	return l.fake.EjectMedia(ctx)
}

func (l *login) Close() {}
