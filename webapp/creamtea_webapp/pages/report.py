from creamtea_webapp import session


def page() -> None:
    session.require_reader()
