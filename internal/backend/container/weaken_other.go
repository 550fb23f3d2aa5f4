//go:build !linux

package container

// A build that can be weakened is made for Linux alone.

func (b *Backend) takeAwayFirst(*engine, *plan) {}

func (b *Backend) takeAway(*engine, *plan) {}
