# Subordinate ids for users that scripts make. To be sourced; must be root.

# give_subids USER: a range above all others, where the user has none.
give_subids() {
	local first
	! grep -q "^$1:" /etc/subuid 2>/dev/null || return 0
	touch /etc/subuid /etc/subgid
	first=$(cat /etc/subuid /etc/subgid | awk -F: '
		$2 + $3 > top { top = $2 + $3 }
		END { if (top < 1000000) top = 1000000; print int((top + 65535) / 65536) * 65536 }')
	usermod --add-subuids "$first-$((first + 65535))" --add-subgids "$first-$((first + 65535))" "$1"
}
