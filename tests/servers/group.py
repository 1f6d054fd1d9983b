"""MySQL's group replication: three servers that all accept writes."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from tests.servers.mariadb import MySQL
from tests.servers.server import HOST, PASSWORD, Group, ServerError, free_port

if TYPE_CHECKING:
    from pathlib import Path

GROUP = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
"""The name of the group."""


class Member(MySQL):
    """A member of a group."""

    name = "mysql_member"

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.group_port = free_port()
        self.group: tuple[Member, ...] = ()
        self.has_joined = False

    def command(self) -> list[str]:
        return [
            *super().command(),
            f"--server-id={self.port}",
            "--gtid-mode=ON",  # not yet when it is created, whose transactions are not the group's
            "--enforce-gtid-consistency=ON",
            f"--report-host={HOST}",
            f"--report-port={self.port}",
            "--plugin-load-add=group_replication.so",
            f"--loose-group-replication-group-name={GROUP}",
            "--loose-group-replication-start-on-boot=OFF",
            f"--loose-group-replication-local-address={HOST}:{self.group_port}",
            f"--loose-group-replication-group-seeds={','.join(f'{HOST}:{each.group_port}' for each in self.group)}",
            "--loose-group-replication-single-primary-mode=OFF",
            "--loose-group-replication-enforce-update-everywhere-checks=ON",
            "--loose-group-replication-message-cache-size=134217728",
            "--loose-group-replication-recovery-get-public-key=ON",
            "--loose-group-replication-member-expel-timeout=0",
        ]

    def prepare(self) -> None:
        """Do what each member does before it joins, without a trace in its log."""
        self.sql(
            f"SET sql_log_bin = 0; CREATE USER peer IDENTIFIED BY '{PASSWORD}'; GRANT REPLICATION SLAVE ON *.* TO peer;"
            "GRANT GROUP_REPLICATION_STREAM, CONNECTION_ADMIN, BACKUP_ADMIN ON *.* TO peer; SET sql_log_bin = 1;"
            f"CHANGE REPLICATION SOURCE TO SOURCE_USER='peer', SOURCE_PASSWORD='{PASSWORD}'"
            " FOR CHANNEL 'group_replication_recovery';"
        )

    def joins(self) -> bool:
        """Join the group, or begin one if no other member is in it; return True once it is in the group.

        The others refuse it until they have noticed that it ended.
        """
        if not self.is_up() or (state := self._state()) in {"ONLINE", "RECOVERING"}:
            return self.is_online()
        begins = not any(each.pid and each.has_joined for each in self.group if each is not self)
        leave = "STOP GROUP_REPLICATION; SET GLOBAL offline_mode = OFF;" if state == "ERROR" else ""
        with suppress(ServerError):
            self.sql(
                f"{leave} SET GLOBAL group_replication_bootstrap_group = {begins}; START GROUP_REPLICATION;"
                "SET GLOBAL group_replication_bootstrap_group = OFF;"
            )
            self.has_joined = True
        return self.is_online()

    def is_online(self) -> bool:
        return self.is_up() and self._state() == "ONLINE"

    def _state(self) -> str:
        return self.sql(
            "SELECT member_state FROM performance_schema.replication_group_members WHERE member_id = @@server_uuid"
        ).strip()


class MySQLGroup(Group):
    """Three members; any two are a majority."""

    name = "mysql_group"
    programs = MySQL.programs
    members: tuple[Member, ...]

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.members = tuple(Member(directory / f"member-{number}") for number in range(3))
        for member in self.members:
            member.group = self.members

    @property
    def url(self) -> str:
        return self.members[0].url

    def start(self) -> None:
        for member in self.members:
            member.start()
        self.until(lambda: all(member.joins() for member in self.members), "all members are in the group")

    def reset(self) -> None:
        first = self.members[0]
        first.reset()
        first.sql(
            f"CREATE USER IF NOT EXISTS mintage IDENTIFIED BY '{PASSWORD}'; GRANT ALL ON mintage.* TO mintage;"
            "GRANT SELECT ON performance_schema.replication_group_members TO mintage;"
        )
