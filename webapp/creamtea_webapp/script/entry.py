"""What Streamlit runs for every browser session. It lies in a folder of its own, because a folder `pages`
beside the script would make Streamlit list every file in it as a page, for everybody."""

from creamtea_webapp.app import main

main()
